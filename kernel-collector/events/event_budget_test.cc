#include "kernel-collector/events/event_budget.h"

#include <gtest/gtest.h>

#include <limits>

namespace tributary {
namespace {

MonotonicNs Seconds(int64_t s) { return MonotonicNs{s * kNsPerSecond}; }

TEST(EventBudget, StartsFullAndRefillsAtItsRate) {
  EventBudget budget(200, Seconds(100));
  EXPECT_EQ(budget.capacity(), 2000u);
  EXPECT_EQ(budget.tokens(), 2000u);
  budget.Spend(2000);
  EXPECT_EQ(budget.tokens(), 0u);
  budget.Refill(Seconds(105));
  EXPECT_EQ(budget.tokens(), 1000u);
  budget.Refill(Seconds(104));  // an older time changes nothing
  EXPECT_EQ(budget.tokens(), 1000u);
  budget.Refill(MonotonicNs{std::numeric_limits<int64_t>::max()});
  EXPECT_EQ(budget.tokens(), 2000u);
}

TEST(EventBudget, KeepsFractionsOfTokens) {
  EventBudget budget(1, Seconds(0));
  budget.Spend(10);
  for (int i = 1; i <= 7; ++i) budget.Refill(MonotonicNs{i * kNsPerSecond / 7 + 1});
  EXPECT_EQ(budget.tokens(), 1u);
}

TEST(EventBudget, LimitsTheRate) {
  EXPECT_EQ(EventBudget(4'000'000'000, Seconds(0)).capacity(), 100'000u);
  EXPECT_EQ(EventBudget(0, Seconds(0)).tokens(), 0u);
}

}  // namespace
}  // namespace tributary
