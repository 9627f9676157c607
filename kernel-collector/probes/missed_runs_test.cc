#include "kernel-collector/probes/missed_runs.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr int64_t kSettleNs = MissedRuns::kSettleNs;

MonotonicNs At(int64_t seconds) { return MonotonicNs{1'000 * kNsPerSecond + seconds * kNsPerSecond}; }

TEST(MissedRuns, CountsRunsThatNoCopyReplaced) {
  MissedRuns missed;
  EXPECT_EQ(missed.Update(0, 0, At(0), false), 0u);
  EXPECT_EQ(missed.Update(10, 8, At(1), false), 0u);
  EXPECT_EQ(missed.Update(10, 8, At(2), false), 2u);
  EXPECT_EQ(missed.Update(10, 8, At(3), false), 2u);
}

TEST(MissedRuns, WaitsForARunBetweenTwoCopies) {
  MissedRuns missed;
  missed.Update(0, 0, At(0), false);
  EXPECT_EQ(missed.Update(1, 0, At(1), false), 0u);
  for (int64_t ns = 0; ns < kSettleNs; ns += kSettleNs / 8) {
    EXPECT_EQ(missed.Update(1, 0, MonotonicNs{At(1).value + ns}, false), 0u);
  }
  EXPECT_EQ(missed.Update(1, 1, At(2), false), 0u);
  EXPECT_EQ(missed.Update(1, 1, At(3), true), 0u);
}

TEST(MissedRuns, CountsAtOnceWhenTheProgramsHaveStopped) {
  MissedRuns missed;
  missed.Update(0, 0, At(0), false);
  EXPECT_EQ(missed.Update(5, 2, At(0), true), 3u);
}

// Runs that were repeated since cannot be told from those that were repeated before.
TEST(MissedRuns, NeverDecreasesAndNeverCountsTooMany) {
  MissedRuns missed;
  missed.Update(4, 3, At(0), false);
  EXPECT_EQ(missed.Update(9, 8, At(1), false), 0u);  // 4 skipped a second ago, 8 repeated since the start
  EXPECT_EQ(missed.Update(9, 8, At(2), false), 1u);
  EXPECT_EQ(missed.Update(20, 19, At(3), false), 1u);
  EXPECT_EQ(missed.Update(20, 19, At(4), true), 1u);
}

// The first copy takes one repeated run back before the next copy counts it.
TEST(MissedRuns, ToleratesANegativeNumberOfRepeatedRuns) {
  MissedRuns missed;
  missed.Update(0, 0, At(0), false);
  EXPECT_EQ(missed.Update(0, static_cast<uint64_t>(-1), At(1), true), 1u);
}

}  // namespace
}  // namespace tributary
