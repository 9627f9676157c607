#include "reducer/metadata/metadata_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include "base/directory_testing.h"
#include "reducer/sqlite/sqlite_entity_store.h"

namespace tributary {
namespace {

const MetadataSender kCluster = {true, "cluster/c1"}, kNode = {false, "n1"};

Entity Make(EntityKind kind, std::string id, Attributes attributes, int64_t from = 0, bool gone = false) {
  return {.kind = kind, .id = std::move(id), .from = UnixNs{from}, .gone = gone, .attributes = std::move(attributes)};
}
Entity Pod(std::string uid, std::string name, int64_t from = 0, bool gone = false) {
  return Make(EntityKind::kPod, std::move(uid), {{"k8s.pod.name", std::move(name)}}, from, gone);
}

class MetadataStoreTest : public ::testing::Test {
 protected:
  void Open() {
    store_.reset();
    options_.store = SqliteEntityStore::Open(folder_);
    store_ = std::make_unique<MetadataStore>(std::move(options_), rules_, names_, clock_, metrics_);
  }
  void Report(const MetadataSender& sender, std::vector<Entity> entities) {
    store_->Take(sender, {.entities = std::move(entities)});
  }
  void ReportSnapshot(const MetadataSender& sender, std::vector<Entity> entities) {
    store_->Take(sender, {.begins_snapshot = true, .ends_snapshot = true, .entities = std::move(entities)});
  }
  std::string PodName(std::string_view uid, UnixNs at) {
    const FoundEntity found = store_->Find(EntityKind::kPod, kCluster, uid, at);
    return found.entity == nullptr ? "" : std::string(FindAttribute(found.entity->attributes, "k8s.pod.name"));
  }
  std::string PodName(std::string_view uid) { return PodName(uid, clock_.Unix()); }
  uint64_t Count(std::string_view name, Metrics::Labels labels = {}) {
    return metrics_.AddCounter(name, "", std::move(labels)).value();
  }
  // The work of the upkeep's thread in the next minutes.
  void Upkeep() {
    for (int i = 0; i < 2; ++i) {
      store_->Flush();
      store_->Maintain();
      clock_.Advance(2 * kNsPerMinute);
    }
  }
  size_t Senders() { return static_cast<size_t>(metrics_.AddGauge("tributary_metadata_tellers", "").value()); }
  size_t Entities() { return static_cast<size_t>(metrics_.AddGauge("tributary_metadata_entities", "").value()); }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  K8sNameRules rules_;
  AttributeNames names_;
  std::string folder_ = directory_.path();
  MetadataStore::Options options_;  // `store` is opened again each time
  std::unique_ptr<MetadataStore> store_;
};

TEST_F(MetadataStoreTest, NodesMayOnlyDescribeThemselvesAndTheirContainers) {
  Open();
  Report(kNode,
         {Make(EntityKind::kHost, "n1", {{"host.name", "a"}}), Make(EntityKind::kHost, "n2", {{"host.name", "b"}}),
          Pod("u1", "web"), Make(EntityKind::kContainer, "c", {{"container.image.name", "nginx"}}),
          Make(EntityKind::kCluster, "", {}), Make(EntityKind::kUnknown, "x", {})});
  Report(kCluster, {Make(EntityKind::kHost, "n1", {{"host.name", "forged"}}), Pod("u1", "web")});
  EXPECT_EQ(Count("tributary_metadata_refusals_total", {{"reason", "scope"}}), 5u);
  EXPECT_EQ(FindAttribute(store_->Find(EntityKind::kHost, kNode, "n1", UnixNs{1}).entity->attributes, "host.name"),
            "a");
  EXPECT_EQ(store_->Find(EntityKind::kHost, {false, "n2"}, "n2", UnixNs{1}).entity, nullptr);
  EXPECT_EQ(store_->Find(EntityKind::kContainer, {false, "n2"}, "c", UnixNs{1}).entity, nullptr);
  EXPECT_EQ(PodName("u1"), "web");
}

TEST_F(MetadataStoreTest, EntitiesMissingFromASnapshotEnd) {
  Open();
  ReportSnapshot(kCluster, {Pod("u1", "one"), Pod("u2", "two")});
  Report(kNode, {Make(EntityKind::kHost, "n1", {})});
  clock_.Advance(kNsPerSecond);
  store_->Take(kCluster, {.begins_snapshot = true, .entities = {Pod("u2", "two")}});
  Report(kCluster, {Pod("u3", "three")});  // between a snapshot's messages: it counts as present, too
  store_->Take(kCluster, {.ends_snapshot = true, .entities = {Pod("u4", "four")}});
  clock_.Advance(2 * kNsPerMinute);
  store_->Flush();
  store_->Maintain();
  EXPECT_EQ(Entities(), 4u);        // u2, u3, u4, the host
  EXPECT_EQ(PodName("u1"), "one");  // from the database
}

TEST_F(MetadataStoreTest, FindsAcceptedEntitiesInAnyCluster) {
  Open();
  const MetadataSender other = {true, "c2"};
  Report(other, {Make(EntityKind::kContainer, "c", {{"k8s.pod.uid", "liar"}})});
  Report(kCluster, {Make(EntityKind::kContainer, "c", {{"k8s.pod.uid", "u1"}})});
  const auto found = store_->FindInClusters(EntityKind::kContainer, "c", clock_.Unix(), [](const Entity& entity) {
    return FindAttribute(entity.attributes, "k8s.pod.uid") == "u1";
  });
  ASSERT_NE(found.entity, nullptr);
  EXPECT_EQ(found.cluster, kCluster);
  EXPECT_EQ(store_->FindInClusters(EntityKind::kPod, "c", clock_.Unix(), [](const Entity&) { return true; }).entity,
            nullptr);
}

TEST_F(MetadataStoreTest, KeepsEntitiesOverARestart) {
  Open();
  const UnixNs before = clock_.Unix();
  Report(kCluster, {Pod("u1", "old"), Pod("u2", "stays")});
  clock_.Advance(kNsPerSecond);
  Report(kCluster, {Pod("u1", "new")});
  Open();
  EXPECT_EQ(PodName("u1", before), "old");
  EXPECT_EQ(PodName("u1"), "new");
  EXPECT_EQ(PodName("u2"), "stays");
  // The watcher connects again, and u2 does not exist any more.
  clock_.Advance(kNsPerSecond);
  ReportSnapshot(kCluster, {Pod("u1", "new")});
  EXPECT_EQ(PodName("u1", before), "old");
  clock_.Advance(2 * kNsPerMinute);
  store_->Flush();
  store_->Maintain();
  EXPECT_EQ(Entities(), 1u);
}

TEST_F(MetadataStoreTest, FindsOldStatesOfALiveEntityInTheDatabase) {
  Open();
  std::vector<UnixNs> times;
  for (int i = 0; i < 5; ++i) {
    Report(kCluster, {Pod("u1", std::to_string(i))});
    times.push_back(clock_.Unix());
    clock_.Advance(2 * kNsPerMinute);
    store_->Flush();
  }
  for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(PodName("u1", times[i]), std::to_string(i));
  const FoundEntity found = store_->Find(EntityKind::kPod, kCluster, "u1", times[1]);
  EXPECT_EQ(found.until, times[2]);
}

TEST_F(MetadataStoreTest, KeepsUsedEntitiesAsLongAsSamples) {
  Open();
  Report(kCluster, {Pod("u1", "used"), Pod("u2", "idle")});
  EXPECT_EQ(PodName("u1"), "used");
  Report(kCluster, {Pod("u1", "", 0, true), Pod("u2", "", 0, true)});
  store_->Flush();
  clock_.Advance(30 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(Entities(), 0u);
  Open();
  clock_.Advance(40 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(PodName("u1"), "used");
  EXPECT_EQ(PodName("u2"), "");
  clock_.Advance(7 * kNsPerDay);
  store_->Maintain();
  Open();
  EXPECT_EQ(PodName("u1"), "");
}

TEST_F(MetadataStoreTest, KeepsEntitiesThatAreFirstUsedAfterTheirEnd) {
  Open();
  Report(kCluster, {Pod("u1", "late")});
  Report(kCluster, {Pod("u1", "", 0, true)});
  store_->Flush();
  clock_.Advance(30 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(PodName("u1"), "late");  // a sample came late
  store_->Maintain();
  clock_.Advance(60 * kNsPerMinute);
  store_->Maintain();
  Open();
  EXPECT_EQ(PodName("u1"), "late");
}

TEST_F(MetadataStoreTest, ARepeatedEndRemovesNoHistory) {
  Open();
  const UnixNs before = clock_.Unix();
  Report(kCluster, {Pod("u1", "first")});
  clock_.Advance(kNsPerSecond);
  Report(kCluster, {Pod("u1", "second")});
  EXPECT_EQ(PodName("u1"), "second");
  Report(kCluster, {Pod("u1", "", 0, true)});
  store_->Flush();
  clock_.Advance(2 * kNsPerMinute);
  store_->Maintain();
  // The watcher connects again and reports recently ended pods, as far as it still knows them.
  ReportSnapshot(kCluster,
                 {Pod("u1", "second", clock_.Unix().value - kNsPerMinute, true), Pod("u2", "missed", 0, true)});
  store_->Flush();
  clock_.Advance(2 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(PodName("u1", before), "first");
  EXPECT_EQ(PodName("u2"), "missed");
  clock_.Advance(70 * kNsPerMinute);
  store_->Maintain();
  Open();
  EXPECT_EQ(PodName("u1", before), "first");  // it still belongs to samples
}

TEST_F(MetadataStoreTest, FindsAnEntityThatArrivesAfterAMiss) {
  Open();
  EXPECT_EQ(PodName("u1"), "");  // the cache now knows that the database does not have it
  Report(kCluster, {Pod("u1", "web")});
  EXPECT_EQ(PodName("u1"), "web");
  Report(kCluster, {Pod("u1", "", 0, true)});
  store_->Flush();
  clock_.Advance(2 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(Entities(), 0u);
  EXPECT_EQ(PodName("u1"), "web");
}

TEST_F(MetadataStoreTest, MemoryIsBounded) {
  options_.entities_max = 10;
  options_.node_entities_max = 3;
  options_.clusters_max = 1;
  Open();
  for (int i = 0; i < 20; ++i) Report(kNode, {Make(EntityKind::kContainer, "c" + std::to_string(i), {})});
  for (int i = 0; i < 20; ++i) Report(kCluster, {Pod("u" + std::to_string(i), "p")});
  Report({true, "c2"}, {Pod("x", "p")});
  EXPECT_EQ(Entities(), 10u);
  EXPECT_EQ(Count("tributary_metadata_refusals_total", {{"reason", "full"}}), 17u + 13u + 1u);
  Report(kCluster, {Pod("u0", "changed")});  // a known entity may change
  EXPECT_EQ(PodName("u0"), "changed");
}

TEST_F(MetadataStoreTest, ForgetsSendersThatStayAway) {
  const MetadataSender stays = {false, "n2"};
  Open();
  for (const MetadataSender& sender : {kNode, kCluster, stays}) store_->Connected(sender);
  Report(kNode, {Make(EntityKind::kHost, "n1", {{"host.name", "a"}}), Make(EntityKind::kContainer, "c", {})});
  Report(stays, {Make(EntityKind::kHost, "n2", {})});
  Report(kCluster, {Pod("u1", "used"), Pod("u2", "idle")});
  EXPECT_EQ(PodName("u1"), "used");
  for (const MetadataSender& sender : {kNode, kCluster}) store_->Disconnected(sender);
  clock_.Advance(5 * 60 * kNsPerMinute);
  Upkeep();
  EXPECT_EQ(Entities(), 5u);  // the senders may come back
  clock_.Advance(2 * 60 * kNsPerMinute);
  Upkeep();
  Upkeep();
  EXPECT_EQ(Entities(), 1u);
  EXPECT_EQ(Senders(), 2u);  // the cluster has history
  EXPECT_EQ(PodName("u1"), "used");
  EXPECT_EQ(PodName("u2"), "");
  clock_.Advance(8 * kNsPerDay);
  Upkeep();
  EXPECT_EQ(Senders(), 1u);
  EXPECT_EQ(store_->Clusters().size(), 0u);
  Report(kCluster, {Pod("u3", "back")});
  Report(kNode, {Make(EntityKind::kHost, "n1", {{"host.name", "b"}})});
  EXPECT_EQ(PodName("u3"), "back");
  EXPECT_EQ(Entities(), 3u);
}

TEST_F(MetadataStoreTest, ForgottenSendersStayForgottenOverARestart) {
  Open();
  Report(kNode, {Make(EntityKind::kHost, "n1", {{"host.name", "a"}})});
  Open();
  EXPECT_EQ(Senders(), 1u);
  clock_.Advance(7 * 60 * kNsPerMinute);
  Upkeep();
  Upkeep();
  EXPECT_EQ(Senders(), 0u);
  Open();
  EXPECT_EQ(Senders(), 0u);
}

TEST_F(MetadataStoreTest, NodesAreBounded) {
  options_.nodes_max = 2;
  Open();
  for (int i = 0; i < 5; ++i) {
    const std::string id = "n" + std::to_string(i);
    store_->Connected({false, id});
    Report({false, id}, {Make(EntityKind::kHost, id, {})});
    store_->Disconnected({false, id});
  }
  EXPECT_EQ(Senders(), 2u);
  EXPECT_EQ(Count("tributary_metadata_refusals_total", {{"reason", "full"}}), 3u);
}

TEST_F(MetadataStoreTest, ChurnStaysBounded) {
  Open();
  size_t most = 0;
  for (int second = 0; second < 300; ++second) {
    for (int i = 0; i < 10; ++i) {
      Report(kCluster, {Pod("u" + std::to_string(second * 10 + i), "p")});
      if (second > 10) Report(kCluster, {Pod("u" + std::to_string((second - 10) * 10 + i), "", 0, true)});
    }
    clock_.Advance(kNsPerSecond);
    if (second % 10 == 0) {
      store_->Flush();
      store_->Maintain();
    }
    most = std::max(most, Entities());
  }
  EXPECT_LE(most, 10u * (10 + 60 + 11));
}

TEST_F(MetadataStoreTest, ADamagedDatabaseIsSetAside) {
  Open();
  Report(kCluster, {Pod("u1", "web")});
  store_.reset();
  {
    std::ofstream file(folder_ + "/metadata.db", std::ios::binary | std::ios::trunc);
    file << std::string(100'000, 'x');
  }
  Open();
  EXPECT_EQ(PodName("u1"), "");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/metadata.db.broken"));
  Report(kCluster, {Pod("u1", "again")});
  Open();
  EXPECT_EQ(PodName("u1"), "again");
}

TEST_F(MetadataStoreTest, KeepsEntitiesInMemoryWithoutADatabase) {
  folder_ = directory_.path() + "/missing";
  Open();
  EXPECT_EQ(Count("tributary_metadata_store_errors_total"), 1u);
  Report(kCluster, {Pod("u1", "web")});
  Report(kCluster, {Pod("u1", "", 0, true)});
  store_->Flush();
  clock_.Advance(30 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(PodName("u1"), "web");
  clock_.Advance(31 * kNsPerMinute);
  store_->Maintain();
  EXPECT_EQ(PodName("u1"), "");
}

// A store that fails to write, or that waits in Find, as long as the test wants.
struct TestEntityStore final : EntityStore {
  struct State {
    absl::Status result;
    size_t saves = 0;
    std::vector<std::string> saved;
    std::promise<void> reading, release;
    std::atomic<bool> waits{false};
  };
  explicit TestEntityStore(State& of) : state(of) {}
  absl::Status Save(std::span<const Row> rows) override {
    ++state.saves;
    if (!state.result.ok()) return state.result;
    for (const Row& row : rows) state.saved.push_back(row.id + (row.states.empty() ? " used" : ""));
    return absl::OkStatus();
  }
  absl::Status Load(UnixNs, absl::FunctionRef<void(const Row&)>) override { return absl::OkStatus(); }
  absl::StatusOr<Row> Find(const MetadataSender& sender, EntityKind kind, std::string_view id) override {
    if (id == "slow" && state.waits.exchange(false)) {
      state.reading.set_value();
      state.release.get_future().wait();
    }
    Row row{sender, kind, std::string(id), false, false, {}};
    row.states.push_back({kTimeBegin, kTimeEnd, std::make_shared<const Entity>(Pod(std::string(id), "stored"))});
    return row;
  }
  absl::StatusOr<std::vector<MetadataSender>> Clusters() override { return std::vector<MetadataSender>(); }
  absl::StatusOr<bool> Knows(const MetadataSender&) override { return false; }
  absl::StatusOr<bool> Expire(UnixNs, UnixNs) override { return false; }
  State& state;
};

TEST_F(MetadataStoreTest, ChangesWaitWhileTheDiskIsFull) {
  TestEntityStore::State state;
  options_.store = std::make_unique<TestEntityStore>(state);
  store_ = std::make_unique<MetadataStore>(std::move(options_), rules_, names_, clock_, metrics_);
  state.result = absl::ResourceExhaustedError("disk full");
  Report(kCluster, {Pod("a", "a")});
  store_->Flush();
  store_->Flush();
  EXPECT_EQ(state.saves, 1u) << "a pause";
  Report(kCluster, {Pod("b", "b")});
  clock_.Advance(kNsPerSecond);
  store_->Flush();
  clock_.Advance(kNsPerSecond);
  store_->Flush();
  EXPECT_EQ(state.saves, 2u) << "a longer pause";
  EXPECT_EQ(metrics_.AddGauge("tributary_metadata_writes_failing", "", {{"data", "metadata"}}).value(), 1);
  clock_.Advance(kNsPerSecond);
  state.result = absl::OkStatus();
  store_->Flush();
  EXPECT_THAT(state.saved, testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(metrics_.AddGauge("tributary_metadata_writes_failing", "", {{"data", "metadata"}}).value(), 0);
}

TEST_F(MetadataStoreTest, UsesWaitWhileTheDiskIsFull) {
  TestEntityStore::State state;
  options_.store = std::make_unique<TestEntityStore>(state);
  store_ = std::make_unique<MetadataStore>(std::move(options_), rules_, names_, clock_, metrics_);
  Report(kCluster, {Pod("a", "a")});
  store_->Flush();
  EXPECT_EQ(PodName("a"), "a");
  EXPECT_EQ(PodName("b"), "stored");
  state.result = absl::ResourceExhaustedError("disk full");
  store_->Maintain();
  clock_.Advance(kNsPerSecond);
  state.result = absl::OkStatus();
  state.saved.clear();
  store_->Maintain();
  EXPECT_THAT(state.saved, testing::UnorderedElementsAre("a used", "b used"));
}

TEST_F(MetadataStoreTest, ALookUpInTheDatabaseDelaysNoOther) {
  TestEntityStore::State state;
  options_.store = std::make_unique<TestEntityStore>(state);
  store_ = std::make_unique<MetadataStore>(std::move(options_), rules_, names_, clock_, metrics_);
  state.waits = true;
  std::thread query([this] { EXPECT_EQ(PodName("slow"), "stored"); });
  state.reading.get_future().wait();
  EXPECT_EQ(PodName("other"), "stored");  // a deadlock if it waited
  EXPECT_EQ(PodName("slow"), "stored") << "two threads may read the same entity";
  Report(kCluster, {Pod("a", "a")});
  Upkeep();
  state.release.set_value();
  query.join();
  state.saved.clear();
  store_->Maintain();
  EXPECT_THAT(state.saved, testing::Contains("slow used"));
}

TEST_F(MetadataStoreTest, KnowsWhetherASnapshotIsUnderWay) {
  Open();
  store_->Connected(kCluster);
  Report(kCluster, {Pod("u1", "one")});
  EXPECT_FALSE(store_->IsReceivingSnapshot());
  store_->Take(kCluster, {.begins_snapshot = true});
  Report(kCluster, {Pod("u2", "two")});
  EXPECT_TRUE(store_->IsReceivingSnapshot());
  store_->Take(kCluster, {.ends_snapshot = true});
  EXPECT_FALSE(store_->IsReceivingSnapshot());
  ReportSnapshot(kCluster, {Pod("u1", "one")});
  store_->Take(kNode, {.begins_snapshot = true});
  EXPECT_FALSE(store_->IsReceivingSnapshot());
  store_->Take(kCluster, {.begins_snapshot = true});
  store_->Disconnected(kCluster);  // the rest of it will not come
  EXPECT_FALSE(store_->IsReceivingSnapshot());
}

TEST_F(MetadataStoreTest, KnowsWhichSourcesItExpects) {
  Open();
  EXPECT_FALSE(store_->ExpectsClusters());
  EXPECT_FALSE(store_->ExpectsContainers("n1"));
  ReportSnapshot(kCluster, {});
  Report(kNode, {Make(EntityKind::kContainer, "c", {})});
  EXPECT_TRUE(store_->ExpectsClusters());
  EXPECT_TRUE(store_->ExpectsContainers("n1"));
  EXPECT_FALSE(store_->ExpectsContainers("n2"));
  clock_.Advance(kNsPerDay);
  EXPECT_FALSE(store_->ExpectsClusters());
  ASSERT_EQ(store_->Clusters().size(), 1u);
  EXPECT_EQ(store_->Clusters()[0].id, "cluster/c1");
  EXPECT_FALSE(store_->Clusters()[0].connected);
  store_->Connected(kCluster);
  store_->Connected(kCluster);
  store_->Disconnected(kCluster);
  EXPECT_TRUE(store_->Clusters()[0].connected);
  store_->Disconnected(kCluster);
  EXPECT_FALSE(store_->Clusters()[0].connected);
}

TEST_F(MetadataStoreTest, LearnsReportedNames) {
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "app").ok());
  Open();
  EXPECT_FALSE(names_.Knows("k8s_pod_label_app"));
  Report(kCluster, {Make(EntityKind::kPod, "u1", {{"k8s.pod.label.app", "web"}, {"k8s.pod.label.other", "x"}})});
  EXPECT_TRUE(names_.Knows("k8s_pod_label_app"));
  EXPECT_TRUE(names_.Knows("k8s.pod.label.app"));
  EXPECT_FALSE(names_.Knows("k8s.pod.label.other"));
  EXPECT_EQ(names_.Nearest("k8s_pod_lable_app"), "k8s.pod.label.app");
}

TEST_F(MetadataStoreTest, ThreadsTakeFindAndSaveTogether) {
  Open();
  std::atomic<bool> stop{false};
  std::thread saver([&] {
    while (!stop) {
      store_->Flush();
      store_->Maintain();
    }
  });
  std::thread reader([&] {
    while (!stop) {
      for (int i = 0; i < 50; ++i) PodName("u" + std::to_string(i), UnixNs{i});
    }
  });
  for (int i = 0; i < 2'000; ++i) {
    Report(kCluster, {Pod("u" + std::to_string(i % 50), std::to_string(i), i + 1, i % 7 == 0)});
  }
  stop = true;
  saver.join();
  reader.join();
  EXPECT_EQ(Entities(), 50u);
}

}  // namespace
}  // namespace tributary
