#include "reducer/store/age_rules.h"

#include <gtest/gtest.h>

namespace tributary::store {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};  // a whole minute, four minutes after the start of a slot
constexpr int64_t kNowMinute = MinuteOf(kNow);
constexpr int64_t kHour = 60 * kNsPerMinute;
constexpr AgeRules::Ages kAges{.raw_ns = kHour, .sum_ns = 3 * kHour, .event_ns = 2 * kHour};

UnixNs Ago(int64_t ns) { return UnixNs{kNow.value - ns}; }

TEST(AgeRules, PlacesASampleByTheAgeOfItsMinute) {
  const AgeRules rules(kAges, kNow, kNowMinute - 2);
  EXPECT_EQ(rules.PlaceOf(UnixNs{kNow.value + kHour}), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOf(kNow), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOf(Ago(kHour)), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOf(Ago(kHour + 1)), SamplePlace::kSumsOnly);
  EXPECT_EQ(rules.PlaceOf(Ago(3 * kHour)), SamplePlace::kSumsOnly);
  EXPECT_EQ(rules.PlaceOf(Ago(3 * kHour + 1)), SamplePlace::kTooOld);
  EXPECT_EQ(rules.PlaceOf(UnixNs{-1}), SamplePlace::kTooOld);
  EXPECT_EQ(rules.PlaceOfMinute(kNowMinute - 60), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOfMinute(kNowMinute - 61), SamplePlace::kSumsOnly);
}

// Retention removes whole minutes and slots, so these are the limits here, too.
TEST(AgeRules, AMinuteIsNeverSplit) {
  const AgeRules rules(kAges, UnixNs{kNow.value + 59 * kNsPerSecond}, kNowMinute);
  EXPECT_EQ(rules.PlaceOf(Ago(kHour)), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOf(Ago(3 * kHour)), SamplePlace::kSumsOnly);
}

TEST(AgeRules, SamplesOfAnOpenMinuteGoIntoChunks) {
  const AgeRules rules(kAges, kNow, kNowMinute - 90);
  EXPECT_EQ(rules.PlaceOfMinute(kNowMinute - 90), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOfMinute(kNowMinute - 91), SamplePlace::kSumsOnly);
  EXPECT_EQ(AgeRules(kAges, kNow, 0).PlaceOf(Ago(3 * kHour + 1)), SamplePlace::kTooOld) << "its sums would be removed";
}

TEST(AgeRules, SumsAreNeverRemovedBeforeTheirSamples) {
  const AgeRules rules({.raw_ns = 3 * kHour, .sum_ns = kHour, .event_ns = kHour}, kNow, kNowMinute);
  EXPECT_EQ(rules.PlaceOf(Ago(2 * kHour)), SamplePlace::kChunk);
  EXPECT_EQ(rules.PlaceOf(Ago(4 * kHour)), SamplePlace::kTooOld);
}

TEST(AgeRules, EventsHaveAnAgeOfTheirOwn) {
  const AgeRules rules(kAges, kNow, kNowMinute);
  EXPECT_TRUE(rules.TakesEvent(kNow));
  EXPECT_TRUE(rules.TakesEvent(Ago(2 * kHour)));
  EXPECT_TRUE(rules.TakesEvent(Ago(2 * kHour + 4 * kNsPerMinute))) << "the slot has begun before";
  EXPECT_FALSE(rules.TakesEvent(Ago(2 * kHour + 4 * kNsPerMinute + 1)));
}

TEST(AgeRules, OldIsOlderThanSingleSamplesMayBe) {
  const AgeRules rules(kAges, kNow, 0);
  EXPECT_FALSE(rules.IsOld(Ago(kHour)));
  EXPECT_TRUE(rules.IsOld(Ago(kHour + 1)));
  EXPECT_TRUE(rules.IsOld(Ago(30 * kNsPerDay)));
}

}  // namespace
}  // namespace tributary::store
