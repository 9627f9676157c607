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

SampleCounts WithEvents(SampleCounts counts, uint64_t events) {
  counts.AddEvents(events);
  return counts;
}

TEST(SampleCounts, EventsAreNoSamples) {
  SampleCounts counts = WithEvents(Counts(5, 3), 7);
  EXPECT_EQ(counts.events(), 7u);
  EXPECT_EQ(counts.Of(SampleType::kProcessEvent), 7u);
  EXPECT_EQ(counts.total(), 8u);
  EXPECT_EQ(counts.cpu(), 5u);
  ASSERT_EQ(counts.parts().size(), 2u);
  EXPECT_EQ(counts.parts()[0], SampleCounts::Part(SampleType::kProcessEvent, 7)) << "events come first";
  EXPECT_EQ(Counts(5, 3).events(), 0u);
  EXPECT_NE(counts, Counts(5, 3));

  const SampleCounts only_events = WithEvents({}, 1);
  EXPECT_FALSE(only_events.empty());
  EXPECT_EQ(only_events.total(), 0u);
  EXPECT_TRUE(SampleCounts().empty());
}

TEST(SampleCounts, AddsAndSubtractsEvents) {
  SampleCounts sum = WithEvents(Counts(5, 3), 7) + WithEvents(1, 2);
  EXPECT_EQ(sum, WithEvents(Counts(6, 3), 9));
  EXPECT_EQ(sum - WithEvents(Counts(1, 1), 4), WithEvents(Counts(5, 2), 5));
  sum -= WithEvents({}, 10);
  EXPECT_EQ(sum, Counts(6, 3)) << "events do not go below 0";
}

TEST(SampleCounts, SplitAddsEventsToTheTotal) {
  SampleCounts counts = 10;
  EXPECT_TRUE(counts.Split(SampleType::kProcessEvent, 400)) << "more than the samples";
  EXPECT_EQ(counts, WithEvents(10, 400));
  EXPECT_FALSE(counts.Split(SampleType::kProcessEvent, 1)) << "sent twice";
  EXPECT_TRUE(counts.Split(kOther, 10));
  EXPECT_EQ(counts, WithEvents(Counts(0, 0, 10), 400));
}

TEST(SampleCounts, MultipliesAndComparesEvents) {
  EXPECT_EQ(WithEvents(Counts(5, 3), 7) * 2, WithEvents(Counts(10, 6), 14));
  EXPECT_EQ(WithEvents(Counts(5, 3), 7) * 0, SampleCounts());
  EXPECT_EQ(Max(WithEvents(Counts(5, 1), 2), WithEvents(Counts(2, 3), 9)), WithEvents(Counts(5, 3), 9));
  EXPECT_EQ(Max(WithEvents({}, 2), Counts(2, 3)), WithEvents(Counts(2, 3), 2));
}

// Neither count limits the other.
TEST(SampleCounts, EventsAndSamplesHaveTheirOwnCaps) {
  SampleCounts counts = WithEvents(UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(counts.total(), kSampleCountMax);
  EXPECT_EQ(counts.events(), kSampleCountMax);
  for (const SampleCounts& sum : {counts + counts, counts * 9, counts * UINT64_MAX, Max(counts, WithEvents(1, 1))}) {
    EXPECT_EQ(sum.total(), kSampleCountMax);
    EXPECT_EQ(sum.cpu(), kSampleCountMax);
    EXPECT_EQ(sum.events(), kSampleCountMax);
  }
  EXPECT_EQ(counts - counts, SampleCounts());
}

TEST(SampleCounts, NamedCountsHaveEventsToo) {
  NamedSampleCounts counts = 3;
  counts.Add({"alloc_space", "bytes"}, 2);
  counts.AddEvents(7);
  EXPECT_EQ(counts.events(), 7u);
  EXPECT_EQ(counts.Of(SampleTypeInfo{}), 7u);
  EXPECT_EQ(counts.total(), 5u);
  EXPECT_EQ(counts.cpu(), 3u);
}

TEST(SampleCounts, CountsABatchsRecords) {
  Batch batch;
  batch.samples.resize(3);
  batch.events.resize(2);
  batch.events[1].events = 40;
  EXPECT_EQ(CountRecords(batch), WithEvents(3, 41));
  batch.samples.clear();
  EXPECT_EQ(CountRecords(batch), WithEvents({}, 41));
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

TEST(Accounting, SumsLostEvents) {
  Accounting accounting{.captured = WithEvents(10, 20)};
  EXPECT_TRUE(accounting.HasParts());
  accounting.LostFor(LossReason::kEventOverflow) = WithEvents({}, 4);
  accounting.LostFor(LossReason::kNotTaken) = WithEvents(1, 5);
  EXPECT_EQ(accounting.TotalLost(), WithEvents(1, 9));
  EXPECT_EQ(accounting.Counted(), WithEvents(11, 29));
}

}  // namespace
}  // namespace tributary
