#include "reducer/ingest/old_days.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tributary::ingest {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
constexpr int64_t kHour = 60 * kNsPerMinute;

class OldDaysTest : public testing::Test {
 protected:
  OldDaysTest() : OldDaysTest({.node_days_max = 2, .nodes_max = 3, .turn_ns = 0}) {}
  explicit OldDaysTest(const OldDays::Options& options) : days_(options) {}

  // Returns how long a batch must wait that was closed `days_ago[0]` days ago, and has a sample of each of `days_ago`.
  int64_t Wait(const std::string& node, const std::vector<double>& days_ago) {
    RowBatch batch;
    batch.clock = {Monotonic(days_ago.at(0)), UnixNs{kNow.value - Ns(days_ago.at(0))}};
    for (const double days : days_ago) batch.samples.emplace_back().time = Monotonic(days);
    return days_.Take(node, batch, kNow, now_);
  }
  int64_t WaitOfEvent(const std::string& node, double days_ago) {
    RowBatch batch;
    batch.clock = {Monotonic(days_ago), UnixNs{kNow.value - Ns(days_ago)}};
    batch.events.emplace_back().time = Monotonic(days_ago);
    return days_.Take(node, batch, kNow, now_);
  }
  static int64_t Ns(double days) { return static_cast<int64_t>(days * kNsPerDay); }
  static MonotonicNs Monotonic(double days_ago) { return MonotonicNs{100 * kNsPerDay - Ns(days_ago)}; }

  MonotonicNs now_{200 * kNsPerDay};
  OldDays days_;
};

TEST_F(OldDaysTest, CurrentDataAreNotLimited) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Wait("a", {0.1 * i}), 0);
  EXPECT_EQ(days_.nodes(), 0u);
}

TEST_F(OldDaysTest, TooOldDataAreNotLimited) {
  for (int day = 10; day < 20; ++day) EXPECT_EQ(Wait("a", {1.0 * day}), 0) << "nothing of them is stored";
  EXPECT_EQ(days_.nodes(), 0u);
}

TEST_F(OldDaysTest, ADayCountsUntilItWasNotUsedForAnHour) {
  EXPECT_EQ(Wait("a", {6}), 0);
  now_.value += 10 * kNsPerMinute;
  EXPECT_EQ(Wait("a", {5}), 0);
  EXPECT_EQ(Wait("a", {4}), 50 * kNsPerMinute);
  EXPECT_EQ(Wait("a", {0}), 0) << "current data need not wait";
  EXPECT_EQ(Wait("a", {5}), 0) << "nor does a day that is used already";
  EXPECT_EQ(Wait("b", {4}), 0) << "nor does another node";
  now_.value += 50 * kNsPerMinute - 1;
  EXPECT_EQ(days_.Take("a", {}, kNow, now_), 0) << "a batch with definitions only never waits";
  EXPECT_EQ(Wait("a", {4}), 1);
  now_.value += 1;
  EXPECT_EQ(Wait("a", {4}), 0);
  EXPECT_EQ(Wait("a", {3}), 10 * kNsPerMinute);
}

TEST_F(OldDaysTest, UseKeepsADay) {
  EXPECT_EQ(Wait("a", {6}), 0);
  EXPECT_EQ(Wait("a", {5}), 0);
  for (int i = 0; i < 10; ++i) {
    now_.value += 30 * kNsPerMinute;
    EXPECT_EQ(Wait("a", {6}), 0);
    EXPECT_EQ(Wait("a", {5}), 0);
    EXPECT_EQ(Wait("a", {4}), kHour);
  }
}

// Times of a batch may be later than the batch, so one batch may have samples of many days.
TEST_F(OldDaysTest, ABatchOfManyDaysWaitsForAllOthers) {
  EXPECT_EQ(Wait("a", {6}), 0);
  EXPECT_EQ(Wait("a", {5, 4, 3, 2}), kHour);
  now_.value += kHour;
  EXPECT_EQ(Wait("a", {5, 4, 3, 2}), 0);
  EXPECT_EQ(Wait("a", {6}), kHour);
}

// An impossible time becomes the time of the batch, which may be old although no sample's own time is.
TEST_F(OldDaysTest, FindsOldDaysBehindImpossibleTimes) {
  EXPECT_EQ(Wait("a", {6}), 0);
  EXPECT_EQ(Wait("a", {5}), 0);
  RowBatch batch;
  batch.clock = {Monotonic(4), UnixNs{kNow.value - Ns(4)}};
  batch.samples.emplace_back().time = Monotonic(-1);
  EXPECT_EQ(days_.Take("a", batch, kNow, now_), kHour);
  batch.samples[0].time = Monotonic(8);
  EXPECT_EQ(days_.Take("a", batch, kNow, now_), kHour);
}

TEST_F(OldDaysTest, EventsUseDays) {
  EXPECT_EQ(WaitOfEvent("a", 6), 0);
  EXPECT_EQ(WaitOfEvent("a", 5), 0);
  EXPECT_EQ(WaitOfEvent("a", 4), kHour);
  EXPECT_EQ(WaitOfEvent("a", 0), 0);
  EXPECT_EQ(WaitOfEvent("a", 9), 0) << "too old";
}

TEST_F(OldDaysTest, ForgetsUnusedNodes) {
  for (const char* node : {"a", "b", "c"}) EXPECT_EQ(Wait(node, {6}), 0);
  EXPECT_EQ(days_.nodes(), 3u);
  now_.value += kHour;
  EXPECT_EQ(Wait("d", {6}), 0);
  EXPECT_EQ(days_.nodes(), 1u);
}

// A peer that may use any id must not be able to fill the table for ever.
TEST_F(OldDaysTest, ManyIdsOfOnePeerDoNotMakeOtherNodesWait) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Wait("hostile-" + std::to_string(i), {6}), 0);
  EXPECT_EQ(Wait("honest", {6}), 0);
  EXPECT_EQ(days_.nodes(), 3u);
  EXPECT_EQ(Wait("honest", {5}), 0);
  EXPECT_EQ(Wait("honest", {4}), kHour) << "its own limit still holds";
}

TEST_F(OldDaysTest, CanBeSwitchedOff) {
  OldDays off({.node_days_max = 0, .turn_ns = 0});
  RowBatch batch;
  for (int day = 2; day < 7; ++day) {
    batch.clock = {Monotonic(day), UnixNs{kNow.value - Ns(day)}};
    batch.samples.assign(1, {});
    batch.samples[0].time = Monotonic(day);
    EXPECT_EQ(off.Take("a", batch, kNow, now_), 0);
  }
}

class OldDaysOfShardTest : public OldDaysTest {
 protected:
  OldDaysOfShardTest() : OldDaysTest({.node_days_max = 2, .turn_ns = kTurn}) {}
  static constexpr int64_t kTurn = 2 * kNsPerMinute;
};

TEST_F(OldDaysOfShardTest, SeveralNodesOfOnePeerUseTwoDaysAtATime) {
  EXPECT_EQ(Wait("hostile-1", {6}), 0);
  EXPECT_EQ(Wait("hostile-2", {5}), 0);
  EXPECT_EQ(Wait("hostile-3", {4}), kTurn);
  EXPECT_EQ(Wait("hostile-4", {3}), kTurn) << "the day after it has the same turn";
  EXPECT_EQ(Wait("hostile-5", {2}), 2 * kTurn);
  EXPECT_EQ(Wait("honest", {0}), 0);
  EXPECT_EQ(Wait("honest", {1}), 0) << "yesterday needs no turn";
  EXPECT_EQ(Wait("honest", {6}), 0);
}

TEST_F(OldDaysOfShardTest, ABatchThatWaitsForATurnUsesNoDayOfItsNode) {
  EXPECT_EQ(Wait("other", {6}), 0);
  EXPECT_EQ(Wait("a", {4}), kTurn);
  EXPECT_EQ(Wait("a", {3}), kTurn);
  now_.value += kTurn;
  EXPECT_EQ(Wait("a", {4}), 0);
  EXPECT_EQ(Wait("a", {3}), 0);
  EXPECT_EQ(Wait("a", {2}), kHour);
}

TEST_F(OldDaysOfShardTest, EventsNeedNoTurn) {
  EXPECT_EQ(Wait("a", {6}), 0);
  EXPECT_EQ(WaitOfEvent("b", 4), 0);
}

TEST_F(OldDaysOfShardTest, TooOldDataNeedNoTurn) {
  for (int day = 10; day < 20; ++day) EXPECT_EQ(Wait("a", {1.0 * day}), 0);
}

// Single samples may be kept for a week: their days are not old, but each of them needs a trie.
TEST_F(OldDaysOfShardTest, DaysOfSingleSamplesNeedATurn) {
  OldDays days({.ages = {.raw_ns = 7 * kNsPerDay}, .node_days_max = 2});
  std::vector<int64_t> waits;
  for (const int days_ago : {0, 1, 2, 3, 4}) {
    RowBatch batch;
    batch.clock = {Monotonic(days_ago), UnixNs{kNow.value - Ns(days_ago)}};
    batch.samples.emplace_back().time = Monotonic(days_ago);
    waits.push_back(days.Take("a", batch, kNow, now_));
  }
  EXPECT_EQ(waits, (std::vector<int64_t>{0, 0, 0, kTurn, 2 * kTurn}));
}

}  // namespace
}  // namespace tributary::ingest
