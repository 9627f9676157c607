#include "base/backoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tributary {
namespace {

using ::testing::ElementsAre;

constexpr Backoff::Bounds kBounds = {.min = 250, .max = 15'000};

std::vector<int64_t> NextWaits(Backoff& backoff, size_t count) {
  std::vector<int64_t> waits(count);
  for (int64_t& wait : waits) wait = backoff.Next();
  return waits;
}

std::vector<int64_t> JitteredWaits(uint64_t seed) {
  std::mt19937_64 random(seed);
  Backoff backoff(kBounds);
  std::vector<int64_t> waits(20);
  for (int64_t& wait : waits) wait = backoff.NextJittered(random);
  return waits;
}

TEST(Backoff, DoublesUpToTheMaximum) {
  Backoff backoff(kBounds);
  EXPECT_THAT(NextWaits(backoff, 9), ElementsAre(250, 500, 1000, 2000, 4000, 8000, 15'000, 15'000, 15'000));
  EXPECT_EQ(backoff.failures(), 9u);
}

TEST(Backoff, NoWaitIsLongerThanTheMaximum) {
  Backoff backoff({.min = 60, .max = 5});
  EXPECT_THAT(NextWaits(backoff, 2), ElementsAre(5, 5));
}

TEST(Backoff, ResetBeginsAgain) {
  Backoff backoff(kBounds);
  NextWaits(backoff, 9);
  backoff.Reset();
  EXPECT_EQ(backoff.failures(), 0u);
  EXPECT_THAT(NextWaits(backoff, 2), ElementsAre(250, 500));
}

TEST(Backoff, StaysAtTheMaximumOnceSkippedTo) {
  Backoff backoff(kBounds);
  backoff.SkipToMax();
  EXPECT_THAT(NextWaits(backoff, 2), ElementsAre(15'000, 15'000));
  backoff.Reset();
  EXPECT_THAT(NextWaits(backoff, 2), ElementsAre(250, 500));
}

TEST(Backoff, ContinuesDoublingAfterTheMaximumRises) {
  Backoff backoff({.min = 1, .max = 30});
  EXPECT_THAT(NextWaits(backoff, 6), ElementsAre(1, 2, 4, 8, 16, 30));
  backoff.SetMax(100);
  EXPECT_THAT(NextWaits(backoff, 2), ElementsAre(64, 100));
  backoff.SetMax(30);
  EXPECT_THAT(NextWaits(backoff, 1), ElementsAre(30));
}

TEST(Backoff, EndlessFailuresDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Backoff backoff({.min = 1, .max = kMax});
  int64_t before = 0;
  for (int i = 0; i < 300; ++i) {
    const int64_t wait = backoff.Next();
    ASSERT_GE(wait, before);
    before = wait;
  }
  EXPECT_EQ(before, kMax);
}

TEST(Backoff, JitterTakesTheUpperHalf) {
  std::mt19937_64 random(1);
  for (const int64_t wait : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{250}, int64_t{30'000'000'000}}) {
    int64_t least = wait, most = 0;
    for (int i = 0; i < 1000; ++i) {
      const int64_t jittered = Jittered(wait, random);
      least = std::min(least, jittered);
      most = std::max(most, jittered);
    }
    EXPECT_GE(least, wait / 2);
    EXPECT_LE(most, wait);
    EXPECT_LE(least, wait / 2 + wait / 50);
    EXPECT_GE(most, wait / 2 * 2 - wait / 50);
  }
  Backoff backoff({.min = 4, .max = 64});
  for (const int64_t wait : {4, 8, 16, 32, 64, 64}) {
    EXPECT_THAT(backoff.NextJittered(random), ::testing::AllOf(::testing::Ge(wait / 2), ::testing::Le(wait)));
  }
}

TEST(Backoff, TheSeedDecidesEveryWait) {
  EXPECT_EQ(JitteredWaits(42), JitteredWaits(42));
  EXPECT_NE(JitteredWaits(42), JitteredWaits(43));
  EXPECT_EQ(SeedOrRandom(7), 7u);
  EXPECT_NE(SeedOrRandom(0), SeedOrRandom(0));
}

}  // namespace
}  // namespace tributary
