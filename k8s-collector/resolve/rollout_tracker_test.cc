#include "k8s-collector/resolve/rollout_tracker.h"

#include <gmock/gmock.h>

namespace tributary {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

RolloutTracker::Sighting Pod(const std::string& hash, int64_t since_s, int64_t revision = 0) {
  return {.kind = "Deployment",
          .name_space = "shop",
          .name = "web",
          .uid = "w",
          .version = {hash, "web:" + hash, "v" + hash},
          .since = UnixNs{since_s * kNsPerSecond},
          .revision = revision};
}

class RolloutTrackerTest : public testing::Test {
 protected:
  RolloutTrackerTest() { tracker_.Settle(); }
  std::string See(RolloutTracker::Sighting sighting) {
    auto rollout = tracker_.See(std::move(sighting));
    return rollout ? rollout->id : "";
  }
  Metrics metrics_;
  Counter& turned_away_ = metrics_.AddCounter("turned_away_total", "");
  RolloutTracker tracker_{turned_away_};
};

TEST_F(RolloutTrackerTest, TheFirstVersionIsNoRollout) {
  EXPECT_EQ(See(Pod("a", 100)), "");
  EXPECT_EQ(See(Pod("a", 200)), "");
}

TEST_F(RolloutTrackerTest, AnotherVersionIsARollout) {
  See(Pod("a", 100));
  auto rollout = tracker_.See(Pod("b", 200));
  ASSERT_TRUE(rollout);
  EXPECT_EQ(rollout->kind, EntityKind::kRollout);
  EXPECT_EQ(rollout->id, "deployment/shop/web/b");
  EXPECT_EQ(rollout->from, UnixNs{200 * kNsPerSecond});
  EXPECT_EQ(rollout->attributes, (Attributes{{"k8s.deployment.name", "web"},
                                             {"k8s.deployment.uid", "w"},
                                             {"k8s.namespace.name", "shop"},
                                             {"rollout.hash", "b"},
                                             {"rollout.images", "web:b"},
                                             {"rollout.previous.hash", "a"},
                                             {"rollout.previous.images", "web:a"},
                                             {"rollout.previous.service.version", "va"},
                                             {"service.version", "vb"}}));
  EXPECT_EQ(See(Pod("b", 201)), "");
  EXPECT_EQ(See(Pod("a", 150)), "");  // a pod of the earlier version
}

TEST_F(RolloutTrackerTest, AReturnToAnEarlierVersionIsARollout) {
  See(Pod("a", 100));
  See(Pod("b", 200));
  EXPECT_EQ(See(Pod("a", 300)), "deployment/shop/web/a@300");
  EXPECT_EQ(See(Pod("b", 400)), "deployment/shop/web/b@400");
}

TEST_F(RolloutTrackerTest, ImageAndServiceVersionCountToo) {
  See(Pod("a", 100));
  auto other = Pod("a", 200);
  other.version.images = "web:hotfix";
  EXPECT_EQ(See(other), "deployment/shop/web/a@200");
  other.version.service_version = "9";
  other.since = UnixNs{300 * kNsPerSecond};
  EXPECT_EQ(See(other), "deployment/shop/web/a@300");
}

TEST_F(RolloutTrackerTest, ReplicaSetRevisionsDecideTheNewerVersion) {
  See(Pod("a", 100, 1));
  EXPECT_EQ(See(Pod("b", 200, 2)), "deployment/shop/web/b");
  EXPECT_EQ(See(Pod("a", 300, 1)), "");  // a node was lost during the rollout
  EXPECT_EQ(See(Pod("a", 400, 3)), "deployment/shop/web/a@400");
}

TEST_F(RolloutTrackerTest, WithinOneSecondTheUnseenVersionIsNewer) {
  See(Pod("a", 100));
  EXPECT_EQ(See(Pod("b", 100)), "deployment/shop/web/b");
  EXPECT_EQ(See(Pod("a", 100)), "");
}

TEST_F(RolloutTrackerTest, JudgesAListInOrderOfTime) {
  tracker_.Hold();
  for (const auto& sighting : {Pod("c", 300), Pod("a", 100), Pod("b", 200), Pod("b", 210), Pod("a", 110)}) {
    EXPECT_FALSE(tracker_.See(sighting));
  }
  const std::vector<Entity> rollouts = tracker_.Settle();
  ASSERT_THAT(rollouts, SizeIs(2));
  EXPECT_EQ(rollouts[0].id, "deployment/shop/web/b");
  EXPECT_EQ(rollouts[1].id, "deployment/shop/web/c");
  EXPECT_THAT(tracker_.Settle(), IsEmpty());
}

TEST_F(RolloutTrackerTest, ARecreatedWorkloadStartsOver) {
  See(Pod("a", 100));
  auto remade = Pod("b", 200);
  remade.uid = "w2";
  EXPECT_EQ(See(remade), "");
  tracker_.Forget("Deployment", "shop", "web");
  EXPECT_EQ(tracker_.workloads(), 0u);
  EXPECT_EQ(See(Pod("c", 300)), "");
}

TEST_F(RolloutTrackerTest, WorkloadsAreBounded) {
  for (size_t i = 0; i <= RolloutTracker::kWorkloadsMax; ++i) {
    auto pod = Pod("a", 100);
    pod.name = std::to_string(i);
    See(pod);
  }
  EXPECT_EQ(tracker_.workloads(), RolloutTracker::kWorkloadsMax);
  EXPECT_EQ(turned_away_.value(), 1u);
}

TEST_F(RolloutTrackerTest, WaitingSightingsAreBounded) {
  tracker_.Hold();
  for (size_t i = 0; i < RolloutTracker::kHeldMax + 2; ++i) See(Pod("a", 100));
  EXPECT_EQ(turned_away_.value(), 2u);
}

TEST(VersionOf, ComesFromLabelsAnnotationsAndImages) {
  KubeObject pod{
      .labels = {{"app.kubernetes.io/version", "1"}, {"controller-revision-hash", "r"}, {"pod-template-hash", "p"}},
      .containers = {{"b", "z:1", true}, {"a", "y:2", true}, {"i", "init", false}}};
  EXPECT_EQ(VersionOf(pod), (PodVersion{"p", "y:2,z:1", "1"}));
  pod.labels.pop_back();
  pod.annotations = {{"resource.opentelemetry.io/service.version", "2"}};
  EXPECT_EQ(VersionOf(pod), (PodVersion{"r", "y:2,z:1", "2"}));
  pod.labels.clear();
  const PodVersion made = VersionOf(pod);
  EXPECT_EQ(made.hash.size(), 10u);
  pod.containers[0].image = "z:2";
  EXPECT_NE(VersionOf(pod).hash, made.hash);
}

}  // namespace
}  // namespace tributary
