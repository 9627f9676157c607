#include "kernel-collector/budget/rate_ladder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tributary {
namespace {

TEST(RateLadder, BeginsWithTheConfiguredPeriodAndEndsAtOneHertz) {
  for (int64_t hz : {2, 19, 97, 999, 10'000}) {
    RateLadder ladder(1'000'000'000 / hz);
    EXPECT_EQ(ladder.period_ns(0), 1'000'000'000 / hz);
    int64_t last = ladder.period_ns(ladder.size() - 1);
    EXPECT_LE(last, RateLadder::kPeriodNsMax) << hz;
    EXPECT_GT(last, RateLadder::kPeriodNsMax / 1.62) << hz;
    for (size_t i = 1; i < ladder.size(); ++i) EXPECT_NEAR(ladder.CostRatio(i - 1, i), 1 / RateLadder::kStep, 1e-5);
  }
}

TEST(RateLadder, HasOneStepAtOneHertz) {
  EXPECT_EQ(RateLadder(1'000'000'000).size(), 1u);
  EXPECT_EQ(RateLadder(3'000'000'000).size(), 1u);
}

// A program that works in turns of some period is sampled at all places of a turn, at every step of the ladder. The
// test counts how evenly 10,000 ticks fall into the 20 parts of a turn of 10 ms.
TEST(RateLadder, LongerPeriodsAvoidRoundRhythms) {
  constexpr int kParts = 20, kTicks = 10'000;
  for (int64_t hz : {19, 97, 99, 100, 999, 1000}) {
    RateLadder ladder(1'000'000'000 / hz);
    for (size_t step = 1; step < ladder.size(); ++step) {
      int ticks[kParts] = {};
      for (int64_t i = 0; i < kTicks; ++i) ++ticks[i * ladder.period_ns(step) % 10'000'000 / (10'000'000 / kParts)];
      for (int n : ticks) EXPECT_NEAR(n, kTicks / kParts, 0.1 * kTicks / kParts) << hz << " Hz, step " << step;
    }
  }
}

}  // namespace
}  // namespace tributary
