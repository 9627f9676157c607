#include "reducer/metadata/opt_outs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/directory_testing.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/sqlite/sqlite_entity_store.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const MetadataSender kCluster = {true, "cluster/c1"}, kOther = {true, "cluster/c2"}, kNode = {false, "n1"};
constexpr char kProfile[] = "tributary.io/profile";

Entity Namespace(const std::string& name, const std::string& profile = "", bool gone = false) {
  Entity entity{.kind = EntityKind::kNamespace, .id = name, .gone = gone};
  if (!profile.empty()) entity.attributes = {{fmt::format("k8s.namespace.annotation.{}", kProfile), profile}};
  return entity;
}
Entity Pod(const std::string& uid, const std::string& name_space, const std::string& profile = "", bool gone = false) {
  Entity entity{.kind = EntityKind::kPod, .id = uid, .gone = gone};
  entity.attributes = {{"k8s.namespace.name", name_space}};
  if (!profile.empty()) SetAttribute(entity.attributes, fmt::format("k8s.pod.annotation.{}", kProfile), profile);
  return entity;
}
Entity Container(const std::string& id, const std::string& pod, bool gone = false) {
  return {.kind = EntityKind::kContainer, .id = id, .gone = gone, .attributes = {{"k8s.pod.uid", pod}}};
}
// A container id as in a cgroup's path.
std::string IdOf(size_t i) { return fmt::format("{:064x}", i + 1); }
std::string UidOf(size_t i) { return fmt::format("{:08x}-1111-2222-3333-444455556666", i); }
std::string PathOf(size_t pod, const std::string& id) {
  return fmt::format("/kubepods/burstable/pod{}/{}", UidOf(pod), id);
}

// Through the MetadataStore, as in the reducer.
class OptOutsTest : public ::testing::Test {
 protected:
  OptOutsTest() { Open(); }
  void Open() {
    store_.reset();
    opt_outs_ = std::make_unique<OptOuts>(clock_, metrics_);
    MetadataStore::Options options{.store = SqliteEntityStore::Open(directory_.path()), .observer = opt_outs_.get()};
    store_ = std::make_unique<MetadataStore>(std::move(options), rules_, names_, clock_, metrics_);
  }
  void Report(std::vector<Entity> entities, const MetadataSender& sender = kCluster) {
    clock_.Advance(kNsPerMs);
    store_->Take(sender, {.entities = std::move(entities)});
  }
  void ReportSnapshot(std::vector<Entity> entities) {
    clock_.Advance(kNsPerMs);
    store_->Take(kCluster, {.begins_snapshot = true, .ends_snapshot = true, .entities = std::move(entities)});
  }
  bool IsOff(const std::string& container, const std::string& node = "n1") {
    return opt_outs_->Drops(node, container, "");
  }
  std::vector<std::string> ListOf(const std::string& node) { return opt_outs_->ListOf(node, UINT64_MAX)->containers; }
  uint64_t Count(std::string_view name) { return metrics_.AddCounter(name, "").value(); }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  K8sNameRules rules_;
  AttributeNames names_;
  std::unique_ptr<OptOuts> opt_outs_;
  std::unique_ptr<MetadataStore> store_;
};

TEST(ParseProfileChoice, AcceptsTheUsualWords) {
  for (const char* text : {"false", "False", "OFF", "no", "0", " false "}) {
    EXPECT_EQ(ParseProfileChoice(text), ProfileChoice::kOff) << text;
  }
  for (const char* text : {"true", "TRUE", "on", "Yes", "1"}) {
    EXPECT_EQ(ParseProfileChoice(text), ProfileChoice::kOn) << text;
  }
  for (const char* text : {"", "\"false\"", "none", "falsee", "2"}) EXPECT_EQ(ParseProfileChoice(text), std::nullopt);
}

TEST_F(OptOutsTest, APodOutranksItsNamespace) {
  Report({Namespace("shop", "off"), Pod("u1", "shop"), Pod("u2", "shop", "true"), Pod("u3", "else", "no"),
          Pod("u4", "else"), Container("c1", "u1"), Container("c2", "u2"), Container("c3", "u3"),
          Container("c4", "u4")});
  EXPECT_TRUE(IsOff("c1"));
  EXPECT_FALSE(IsOff("c2"));
  EXPECT_TRUE(IsOff("c3"));
  EXPECT_FALSE(IsOff("c4"));
  EXPECT_FALSE(IsOff("unknown"));
  EXPECT_FALSE(IsOff(""));
  EXPECT_EQ(metrics_.AddGauge("tributary_metadata_opted_out_containers", "").value(), 2);
}

TEST_F(OptOutsTest, TheOrderOfReportsDoesNotMatter) {
  const std::vector<Entity> entities = {Namespace("shop", "no"), Pod("u1", "shop"), Container("c1", "u1")};
  std::vector<size_t> order = {0, 1, 2};
  do {
    Open();
    for (const size_t i : order) Report({entities[i]});
    EXPECT_TRUE(IsOff("c1"));
    ReportSnapshot({});
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(OptOutsTest, ChangesOfAnnotationsCount) {
  Report({Namespace("shop"), Pod("u1", "shop"), Container("c1", "u1")});
  EXPECT_FALSE(IsOff("c1"));
  Report({Namespace("shop", "false")});
  EXPECT_TRUE(IsOff("c1"));
  Report({Pod("u1", "shop", "true")});
  EXPECT_FALSE(IsOff("c1"));
  Report({Pod("u1", "shop")});
  EXPECT_TRUE(IsOff("c1"));
  Report({Namespace("shop", "true")});
  EXPECT_FALSE(IsOff("c1"));
  EXPECT_TRUE(opt_outs_->IsEmpty());
}

TEST_F(OptOutsTest, BadValuesAreIgnoredAndCountedWhenTheyAppear) {
  Report({Namespace("shop", "off"), Pod("u1", "shop", "maybe"), Container("c1", "u1")});
  EXPECT_TRUE(IsOff("c1")) << "as if the pod had no annotation";
  Report({Pod("u1", "shop", "perhaps"), Namespace("shop", "nope")});
  EXPECT_FALSE(IsOff("c1"));
  EXPECT_EQ(Count("tributary_metadata_bad_opt_outs_total"), 2u) << "the pod's value was bad before";
  Entity empty = Pod("u2", "shop");
  SetAttribute(empty.attributes, fmt::format("k8s.pod.annotation.{}", kProfile), "");
  Report({empty});
  EXPECT_EQ(Count("tributary_metadata_bad_opt_outs_total"), 3u);
}

// The path of a cgroup names the pod before the cluster reports the container.
TEST_F(OptOutsTest, AProcessOfAPodIsDroppedBeforeItsContainerIsReported) {
  Report({Namespace("shop", "off"), Pod(UidOf(0), "shop"), Pod(UidOf(1), "else")});
  EXPECT_TRUE(opt_outs_->Drops("n1", IdOf(0), PathOf(0, IdOf(0))));
  EXPECT_TRUE(opt_outs_->Drops("n1", "", PathOf(0, IdOf(0)))) << "the container's id is in the path, too";
  EXPECT_FALSE(opt_outs_->Drops("n1", IdOf(1), PathOf(1, IdOf(1))));
  EXPECT_THAT(ListOf("n1"), ElementsAre(IdOf(0))) << "the node named it";
  EXPECT_TRUE(opt_outs_->Drops("n1", IdOf(7), PathOf(0, IdOf(7))));
  Report({Pod(UidOf(0), "shop", "true")});
  EXPECT_THAT(ListOf("n1"), IsEmpty());
  Report({Pod(UidOf(0), "shop")});
  EXPECT_TRUE(opt_outs_->Drops("n1", IdOf(7), PathOf(0, IdOf(7))));
  Report({Pod(UidOf(0), "shop", "", true)});
  EXPECT_THAT(ListOf("n1"), IsEmpty()) << "nested containers end with their pod";
  Report({Pod(UidOf(0), "shop"), Container(IdOf(0), UidOf(0))});
  EXPECT_TRUE(opt_outs_->Drops("n1", IdOf(0), PathOf(0, IdOf(0))));
  EXPECT_THAT(ListOf("n1"), ElementsAre(IdOf(0)));
  // A cluster that assigns the container to another pod than the node's kernel does is not believed.
  Report({Pod(UidOf(2), "x", "off"), Container(IdOf(1), UidOf(2))}, kOther);
  EXPECT_FALSE(opt_outs_->Drops("n1", IdOf(1), PathOf(1, IdOf(1))));
}

TEST_F(OptOutsTest, ANodeIsToldOnlyOfItsOwnContainers) {
  Report({Namespace("shop", "off"), Pod("u1", "shop"), Container("c1", "u1"), Container("c2", "u1")});
  const uint64_t before = opt_outs_->version();
  EXPECT_TRUE(IsOff("c1", "n1"));
  EXPECT_TRUE(IsOff("c2", "n2"));
  EXPECT_FALSE(IsOff("c3", "n3"));
  EXPECT_GT(opt_outs_->version(), before);
  EXPECT_THAT(ListOf("n1"), ElementsAre("c1"));
  EXPECT_THAT(ListOf("n2"), ElementsAre("c2"));
  EXPECT_THAT(ListOf("n3"), IsEmpty());
  // Asking again changes nothing.
  const uint64_t told = opt_outs_->version();
  EXPECT_TRUE(IsOff("c1", "n1"));
  EXPECT_EQ(opt_outs_->version(), told);
  const uint64_t of_node = opt_outs_->ListOf("n1", UINT64_MAX)->version;
  EXPECT_FALSE(opt_outs_->ListOf("n1", of_node).has_value());
  // The end of an opt-out changes the lists of its nodes, and of no other node.
  const uint64_t of_other = opt_outs_->ListOf("n2", UINT64_MAX)->version;
  Report({Container("c1", "u2"), Pod("u2", "else")});
  EXPECT_THAT(opt_outs_->ListOf("n1", of_node)->containers, IsEmpty());
  EXPECT_FALSE(opt_outs_->ListOf("n2", of_other).has_value());
}

TEST_F(OptOutsTest, TheListOfANodeHasALimit) {
  std::vector<Entity> entities = {Pod("u1", "shop", "off")};
  for (size_t i = 0; i <= OptOuts::kContainersOfNodeMax; ++i) entities.push_back(Container(IdOf(i), "u1"));
  Report(std::move(entities));
  for (size_t i = 0; i <= OptOuts::kContainersOfNodeMax; ++i) EXPECT_TRUE(IsOff(IdOf(i)));
  EXPECT_EQ(ListOf("n1").size(), OptOuts::kContainersOfNodeMax);
  EXPECT_EQ(Count("tributary_reducer_untold_opt_outs_total"), 1u);
}

TEST_F(OptOutsTest, NodesDecideNothing) {
  Report({Namespace("shop", "off"), Pod("u1", "shop", "off"), Container("c1", "u1")}, kNode);
  EXPECT_FALSE(IsOff("c1"));
}

// A container of two clusters is opted out if one of them says so.
TEST_F(OptOutsTest, ClustersAreSeparate) {
  Report({Namespace("shop", "off"), Pod("u1", "shop"), Container("c1", "u1")});
  Report({Namespace("shop"), Pod("u2", "shop"), Container("c1", "u2"), Container("c2", "u2")}, kOther);
  EXPECT_TRUE(IsOff("c1"));
  EXPECT_FALSE(IsOff("c2"));
  ASSERT_THAT(ListOf("n1"), ElementsAre("c1"));
  Report({Pod("u2", "shop", "off")}, kOther);
  Report({Namespace("shop")});
  EXPECT_TRUE(IsOff("c1"));
  EXPECT_THAT(ListOf("n1"), ElementsAre("c1"));
  Report({Pod("u2", "shop")}, kOther);
  EXPECT_FALSE(IsOff("c1"));
  EXPECT_THAT(ListOf("n1"), IsEmpty());
}

TEST_F(OptOutsTest, EndedContainersStayOptedOutForAWeek) {
  Report(
      {Namespace("shop", "off"), Pod("u1", "shop"), Container("c1", "u1"), Pod("u2", "else"), Container("c2", "u2")});
  EXPECT_TRUE(IsOff("c1"));
  Report({Pod("u1", "shop", "", true), Container("c1", "u1", true), Pod("u2", "else", "", true),
          Container("c2", "u2", true), Namespace("shop", "off", true)});
  EXPECT_TRUE(IsOff("c1")) << "its samples may wait in a spool";
  EXPECT_THAT(ListOf("n1"), IsEmpty()) << "its node need not know it any more";
  clock_.Advance(OptOuts::kEndedKeptNs);
  Report({Namespace("any")});
  EXPECT_FALSE(IsOff("c1"));
  EXPECT_TRUE(opt_outs_->IsEmpty());
  EXPECT_THAT(ListOf("n1"), IsEmpty());
}

TEST_F(OptOutsTest, ARestartContainerAndAReturningPodCount) {
  Report({Pod("u1", "shop", "off"), Container("c1", "u1")});
  Report({Container("c1", "u1", true), Container("c2", "u1")});
  EXPECT_TRUE(IsOff("c2"));
  ReportSnapshot({});  // the pod is missing
  Report({Pod("u1", "shop", "off"), Container("c2", "u1")});
  clock_.Advance(OptOuts::kEndedKeptNs);
  Report({Namespace("any")});
  EXPECT_TRUE(IsOff("c2")) << "it is back";
  EXPECT_THAT(ListOf("n1"), ElementsAre("c2"));
  EXPECT_TRUE(IsOff("c1")) << "as long as its pod is";
}

TEST_F(OptOutsTest, AnEarlierEndDoesNotForgetALaterOne) {
  Report({Pod("u1", "shop", "off"), Container("c1", "u1")});
  Report({Pod("u1", "shop", "off", true)});
  clock_.Advance(OptOuts::kEndedKeptNs / 2);
  Report({Pod("u1", "shop", "off")});
  Report({Pod("u1", "shop", "off", true)});
  clock_.Advance(OptOuts::kEndedKeptNs / 2 + kNsPerMinute);
  Report({Namespace("any")});
  EXPECT_TRUE(IsOff("c1"));
  clock_.Advance(OptOuts::kEndedKeptNs / 2);
  Report({Namespace("other")});
  EXPECT_FALSE(IsOff("c1"));
}

TEST_F(OptOutsTest, EndedContainersAndPodsHaveLimits) {
  Report({Pod("u1", "shop", "off")});
  for (size_t i = 0; i <= OptOuts::kEndedContainersOfPodMax; ++i) {
    Report({Container(IdOf(i), "u1")});
    Report({Container(IdOf(i), "u1", true)});
  }
  EXPECT_FALSE(IsOff(IdOf(0)));
  EXPECT_TRUE(IsOff(IdOf(1)));
  EXPECT_EQ(Count("tributary_metadata_forgotten_opt_outs_total"), 1u);
  // Many ends of one cluster do not remove those of another.
  Report({Pod("u1", "shop", "off", true)});
  for (size_t i = 0; i < OptOuts::kEndedMax; ++i) {
    opt_outs_->OnState(kOther, Pod(UidOf(i), "x", "off"), false);
    opt_outs_->OnState(kOther, Pod(UidOf(i), "x", "off"), true);
  }
  EXPECT_TRUE(IsOff(IdOf(1)));
  EXPECT_FALSE(opt_outs_->Drops("n1", "", PathOf(0, IdOf(0))));
  EXPECT_TRUE(opt_outs_->Drops("n1", "", PathOf(1, IdOf(0))));
  EXPECT_EQ(Count("tributary_metadata_forgotten_opt_outs_total"), 2u);
}

TEST_F(OptOutsTest, EndedPodsSurviveARestartForTheRestOfTheirWeek) {
  Report({Namespace("shop", "off"), Pod("u1", "shop"), Container("c1", "u1"), Pod("u2", "x"), Container("c2", "u2")});
  Report({Pod("u1", "shop", "", true), Container("c1", "u1", true), Pod("u2", "x", "", true)});
  store_->Flush();
  clock_.Advance(OptOuts::kEndedKeptNs / 2);
  Open();
  EXPECT_TRUE(IsOff("c1"));
  EXPECT_FALSE(IsOff("c2"));
  EXPECT_THAT(ListOf("n1"), IsEmpty());
  clock_.Advance(OptOuts::kEndedKeptNs / 2);
  Report({Namespace("any")});
  EXPECT_FALSE(IsOff("c1"));
}

TEST_F(OptOutsTest, SurvivesARestart) {
  Report({Namespace("shop", "off"), Pod("u1", "shop"), Container("c1", "u1")});
  store_->Flush();
  Open();
  EXPECT_TRUE(IsOff("c1"));
  Report({Namespace("shop")});
  EXPECT_FALSE(IsOff("c1"));
}

// 10,000 pods on 1,000 nodes.
TEST_F(OptOutsTest, AChangeCostsOnlyWhatItChanges) {
  constexpr size_t kPods = 10'000, kNodes = 1'000;
  for (size_t i = 0; i < kPods; ++i) {
    Report({Pod(UidOf(i), i % 100 == 0 ? "small" : "large"), Container(IdOf(i), UidOf(i))});
  }
  const auto work_of = [&](Entity entity) {
    const uint64_t before = opt_outs_->work();
    Report({std::move(entity)});
    return opt_outs_->work() - before;
  };
  EXPECT_EQ(work_of(Pod(UidOf(1), "large", "off")), 2u) << "a pod and its container";
  EXPECT_EQ(work_of(Pod(UidOf(1), "large")), 2u);
  EXPECT_EQ(work_of(Namespace("small", "off")), 200u);
  EXPECT_EQ(work_of(Namespace("large", "off")), 2 * (kPods - kPods / 100));
  EXPECT_EQ(work_of(Namespace("large", "false")), 0u) << "the same choice";
  for (size_t i = 0; i < kPods; ++i) EXPECT_TRUE(IsOff(IdOf(i), fmt::format("n{}", i % kNodes)));
  EXPECT_EQ(ListOf("n7").size(), kPods / kNodes);
  const uint64_t version = opt_outs_->version();
  EXPECT_EQ(work_of(Namespace("small")), 200u);
  EXPECT_EQ(opt_outs_->version() - version, kPods / 100) << "one change for each container in a list";
  EXPECT_EQ(ListOf("n7").size(), kPods / kNodes);
}

// Compares with a decision that is made anew from all entities.
TEST_F(OptOutsTest, EqualsADecisionFromScratch) {
  std::mt19937 random(1);
  const auto pick = [&](size_t n) { return random() % n; };
  const std::string values[] = {"", "off", "true", "bad"};
  struct Model {
    std::string name_space, profile;
  };
  std::map<std::string, std::string> namespaces;
  std::map<std::string, Model> pods;
  std::map<std::string, std::string> containers;
  for (int step = 0; step < 3'000; ++step) {
    const std::string name = fmt::format("ns{}", pick(3)), uid = fmt::format("u{}", pick(6)),
                      id = fmt::format("c{}", pick(12)), &value = values[pick(4)];
    switch (pick(3)) {
      case 0:
        Report({Namespace(name, namespaces[name] = value)});
        break;
      case 1:
        pods[uid] = {name, value};
        Report({Pod(uid, name, value)});
        break;
      default:
        containers[id] = uid;
        Report({Container(id, uid)});
    }
    for (const auto& [container, pod] : containers) {
      const auto known = pods.find(pod);
      std::optional<ProfileChoice> choice;
      if (known != pods.end()) {
        choice = ParseProfileChoice(known->second.profile);
        if (!choice) choice = ParseProfileChoice(namespaces[known->second.name_space]);
      }
      ASSERT_EQ(IsOff(container), choice == ProfileChoice::kOff) << container << " at step " << step;
    }
  }
}

}  // namespace
}  // namespace tributary
