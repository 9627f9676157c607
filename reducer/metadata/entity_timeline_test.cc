#include "reducer/metadata/entity_timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>

namespace tributary {
namespace {

Entity Pod(int64_t from, std::string name, bool gone = false) {
  return Entity{
      .kind = EntityKind::kPod, .id = "u1", .from = UnixNs{from}, .gone = gone, .attributes = {{"k8s.pod.name", name}}};
}

std::string NameAt(const EntityTimeline& timeline, int64_t at) {
  const FoundEntity found = timeline.Find(UnixNs{at});
  return found.entity == nullptr ? "" : std::string(FindAttribute(found.entity->attributes, "k8s.pod.name"));
}

TEST(EntityTimeline, TheFirstStateHoldsForAllTimeBefore) {
  EntityTimeline timeline;
  EXPECT_EQ(timeline.Find(UnixNs{5}).entity, nullptr);
  EXPECT_TRUE(timeline.Report(Pod(100, "a"), UnixNs{120}, nullptr));
  EXPECT_EQ(NameAt(timeline, 1), "a");
  EXPECT_EQ(NameAt(timeline, 500), "a");
  EXPECT_EQ(timeline.Find(UnixNs{1}).until, kTimeEnd);
}

TEST(EntityTimeline, AChangeHoldsFromItsTimeOn) {
  EntityTimeline timeline;
  timeline.Report(Pod(0, "a"), UnixNs{100}, nullptr);
  EXPECT_FALSE(timeline.Report(Pod(0, "a"), UnixNs{150}, nullptr));
  EXPECT_TRUE(timeline.Report(Pod(0, "b"), UnixNs{200}, nullptr));
  EXPECT_EQ(NameAt(timeline, 199), "a");
  EXPECT_EQ(NameAt(timeline, 200), "b");
  EXPECT_EQ(timeline.Find(UnixNs{1}).until, UnixNs{200});
}

// A watcher learns of a pod's owner, or of its cluster's uid, a moment after it learns of the pod.
TEST(EntityTimeline, AddedAttributesHoldForTheWholeState) {
  EntityTimeline timeline;
  Entity pod = Pod(0, "a");
  timeline.Report(pod, UnixNs{100}, nullptr);
  SetAttribute(pod.attributes, "k8s.deployment.name", "web");
  EXPECT_TRUE(timeline.Report(pod, UnixNs{200}, nullptr));
  EXPECT_EQ(timeline.states().size(), 1u);
  EXPECT_EQ(FindAttribute(timeline.Find(UnixNs{50}).entity->attributes, "k8s.deployment.name"), "web");
  timeline.Report(Pod(0, "b"), UnixNs{300}, nullptr);
  pod = Pod(0, "b");
  SetAttribute(pod.attributes, "k8s.node.name", "n");
  EXPECT_TRUE(timeline.Report(pod, UnixNs{400}, nullptr));
  EXPECT_EQ(NameAt(timeline, 299), "a");
  EXPECT_EQ(FindAttribute(timeline.Find(UnixNs{300}).entity->attributes, "k8s.node.name"), "n");
}

TEST(EntityTimeline, TheLastReportWins) {
  EntityTimeline timeline;
  timeline.Report(Pod(100, "a"), UnixNs{110}, nullptr);
  timeline.Report(Pod(200, "b"), UnixNs{210}, nullptr);
  timeline.Report(Pod(200, "c"), UnixNs{220}, nullptr);  // the same time: a correction
  EXPECT_EQ(NameAt(timeline, 150), "a");
  EXPECT_EQ(NameAt(timeline, 205), "c");
  timeline.Report(Pod(150, "d"), UnixNs{230}, nullptr);
  EXPECT_EQ(NameAt(timeline, 149), "a");
  EXPECT_EQ(NameAt(timeline, 205), "d");
}

TEST(EntityTimeline, FutureTimesCountAsNow) {
  EntityTimeline timeline;
  timeline.Report(Pod(0, "a"), UnixNs{100}, nullptr);
  timeline.Report(Pod(1'000'000, "b"), UnixNs{200}, nullptr);
  EXPECT_EQ(NameAt(timeline, 200), "b");
}

TEST(EntityTimeline, FindsAnEndedEntity) {
  EntityTimeline timeline;
  timeline.Report(Pod(100, "a"), UnixNs{110}, nullptr);
  EXPECT_TRUE(timeline.Report(Pod(300, "a", true), UnixNs{310}, nullptr));
  EXPECT_TRUE(timeline.gone());
  EXPECT_EQ(timeline.gone_since(), UnixNs{300});
  EXPECT_EQ(NameAt(timeline, 400), "a");
  EXPECT_FALSE(timeline.End(UnixNs{0}, UnixNs{500}));
  EXPECT_EQ(timeline.gone_since(), UnixNs{300});
}

TEST(EntityTimeline, KeepsAnEntityThatIsFirstReportedAsEnded) {
  EntityTimeline timeline;
  EXPECT_TRUE(timeline.Report(Pod(300, "a", true), UnixNs{310}, nullptr));
  EXPECT_TRUE(timeline.gone());
  EXPECT_EQ(NameAt(timeline, 200), "a");
}

TEST(EntityTimeline, AnEndedEntityMayComeBack) {
  EntityTimeline timeline;
  timeline.Report(Pod(100, "a"), UnixNs{110}, nullptr);
  timeline.End(UnixNs{200}, UnixNs{200});
  EXPECT_TRUE(timeline.Report(Pod(300, "a"), UnixNs{310}, nullptr));
  EXPECT_FALSE(timeline.gone());
  ASSERT_EQ(timeline.states().size(), 2u);
  EXPECT_EQ(timeline.states()[0].to, UnixNs{200});
}

TEST(EntityTimeline, LimitsTheNumberOfStates) {
  EntityTimeline timeline;
  uint64_t lost = 0;
  for (int64_t i = 1; i <= 100; ++i) timeline.Report(Pod(i * 10, std::to_string(i)), UnixNs{i * 10}, &lost);
  EXPECT_EQ(timeline.states().size(), EntityTimeline::kStatesMax);
  EXPECT_EQ(lost, 100 - EntityTimeline::kStatesMax);
  EXPECT_EQ(NameAt(timeline, 1000), "100");
  EXPECT_EQ(timeline.DropBefore(UnixNs{985}), EntityTimeline::kStatesMax - 3);
  EXPECT_EQ(NameAt(timeline, 985), "98");
}

// A model of EntityTimeline that stores the state at each instant of a short time.
class Model {
 public:
  static constexpr int64_t kLength = 64;
  void Report(int64_t from, const std::string& name, int64_t now) {
    const int64_t begin = from == 0 ? (first_ ? now : -1) : std::min(from, now);
    if (alive_ && name == names_[kLength - 1] && first_ && begin >= begun_) return;
    for (int64_t t = 0; t < kLength; ++t) {
      if (t >= begin || !first_) names_[t] = name;
    }
    // A report about a time before all known states becomes the first state.
    if (first_ && begin <= *first_) {
      for (std::string& each : names_) each = name;
      first_ = begin;
    }
    if (!first_) first_ = begin;
    begun_ = begin;
    alive_ = true;
  }
  void End() { alive_ = false; }
  const std::string& At(int64_t t) const { return names_[t]; }
  bool alive() const { return alive_; }

 private:
  std::string names_[kLength];
  std::optional<int64_t> first_;
  int64_t begun_ = -1;
  bool alive_ = false;
};

TEST(EntityTimeline, EqualsANaiveModel) {
  std::mt19937 random(7);
  for (int run = 0; run < 2'000; ++run) {
    EntityTimeline timeline;
    Model model;
    int64_t now = 1;
    for (int step = 0; step < 20; ++step) {
      now += random() % 3;
      const uint32_t choice = random() % 8;
      if (choice == 0) {
        const bool had = !timeline.states().empty();
        timeline.End(UnixNs{0}, UnixNs{now});
        if (had) model.End();
      } else {
        const int64_t from = choice < 3 ? 0 : 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(now + 3));
        const std::string name(1, static_cast<char>('a' + random() % 3));
        timeline.Report(Pod(from, name), UnixNs{now}, nullptr);
        model.Report(from, name, now);
      }
      UnixNs last = kTimeBegin;
      for (const EntityTimeline::State& state : timeline.states()) {
        ASSERT_GE(state.from, last);
        ASSERT_LE(state.from, state.to);
        last = state.to;
      }
      ASSERT_EQ(!timeline.states().empty() && !timeline.gone(), model.alive());
      for (int64_t t = 1; t < Model::kLength; ++t) {
        ASSERT_EQ(NameAt(timeline, t), model.At(t)) << "run " << run << " step " << step << " at " << t;
        // A found state holds until its `until`.
        const FoundEntity found = timeline.Find(UnixNs{t});
        if (found.until.value > t + 1) {
          ASSERT_EQ(NameAt(timeline, t + 1), NameAt(timeline, t));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tributary
