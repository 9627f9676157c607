#include "profile/sample_counts.h"

#include <gtest/gtest.h>

#include <vector>

#include "profile/accounting.h"
#include "profile/batch.h"

namespace tributary {
namespace {

constexpr auto kOther = static_cast<SampleType>(7);

SampleCounts Counts(uint64_t cpu, uint64_t off_cpu, uint64_t other = 0) {
  SampleCounts counts = cpu;
  counts.Add(SampleType::kOffCpu, off_cpu);
  counts.Add(kOther, other);
  return counts;
}

TEST(SampleCounts, NumberStandsForCpuSamples) {
  const SampleCounts counts = 5;
  EXPECT_EQ(counts.total(), 5u);
  EXPECT_EQ(counts.cpu(), 5u);
  EXPECT_EQ(counts.Of(SampleType::kCpu), 5u);
  EXPECT_EQ(counts.Of(SampleType::kOffCpu), 0u);
  EXPECT_TRUE(counts.parts().empty());
}

TEST(SampleCounts, AddsAndSubtractsTypeByType) {
  SampleCounts sum = Counts(5, 3) + Counts(1, 2, 4);
  EXPECT_EQ(sum, Counts(6, 5, 4));
  EXPECT_EQ(sum.total(), 15u);
  EXPECT_EQ(sum.Of(kOther), 4u);
  sum -= Counts(6, 1, 9);
  EXPECT_EQ(sum, Counts(0, 4)) << "no type goes below 0, and what is 0 is gone";
  EXPECT_EQ(sum.total(), 4u);
}

TEST(SampleCounts, SplitsATotal) {
  SampleCounts counts = 10;
  EXPECT_TRUE(counts.Split(kOther, 4));
  EXPECT_EQ(counts, Counts(6, 0, 4));
  EXPECT_FALSE(counts.Split(kOther, 1)) << "told twice";
  EXPECT_FALSE(counts.Split(SampleType::kCpu, 1));
  EXPECT_FALSE(counts.Split(SampleType::kOffCpu, 7)) << "more than there are";
  EXPECT_EQ(counts, Counts(6, 0, 4));
}

TEST(SampleCounts, Multiplies) {
  EXPECT_EQ(Counts(5, 3) * 2, Counts(10, 6));
  EXPECT_EQ(Counts(5, 3) * 0, Counts(0, 0));
}

// A sender can claim any number. If a total wrapped, it would be smaller than one of its parts.
TEST(SampleCounts, SumsStopBeforeTheyWrap) {
  SampleCounts first = UINT64_MAX, second = UINT64_MAX;
  EXPECT_EQ(first.total(), kSampleCountMax);
  ASSERT_TRUE(second.Split(kOther, kSampleCountMax));
  const uint64_t times = 9;
  for (const SampleCounts& sum : {first + second, second + first, Max(first, second), Max(second, first),
                                  second * times, second * UINT64_MAX, Counts(1, 2, 3) * UINT64_MAX}) {
    EXPECT_EQ(sum.total(), kSampleCountMax);
    uint64_t parts = sum.cpu();
    for (const auto& [type, samples] : sum.parts()) parts += samples;
    EXPECT_EQ(parts, sum.total());
  }
}

TEST(SampleCounts, MaxIsTypeByType) { EXPECT_EQ(Max(Counts(5, 1), Counts(2, 3, 1)), Counts(5, 3, 1)); }

TEST(SampleCounts, CountsABatchsSamples) {
  std::vector<Sample> samples(6);
  samples[1].type = samples[4].type = SampleType::kOffCpu;
  samples[5].type = kOther;
  EXPECT_EQ(CountSamples(samples), Counts(3, 2, 1));
}

TEST(Accounting, SumsLossesByType) {
  Accounting accounting{.captured = Counts(10, 4)};
  accounting.LostFor(LossReason::kRingFull) = Counts(1, 2);
  accounting.LostFor(LossReason::kShutdown) = 3;
  EXPECT_EQ(accounting.TotalLost(), Counts(4, 2));
  Accounting twice = accounting;
  twice += accounting;
  EXPECT_EQ(twice.TotalLost(), Counts(8, 4));
  twice -= accounting;
  EXPECT_EQ(twice, accounting);
}

}  // namespace
}  // namespace tributary
