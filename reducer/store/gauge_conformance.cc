#include <gtest/gtest.h>

#include "reducer/store/store_conformance_testing.h"

// For types with the aggregation `last`, a minute has each process's last snapshot.
namespace tributary::store {

RowBatch GaugeConformance::AsGauge(RowBatch batch) {
  constexpr auto kType = static_cast<SampleType>(200);
  for (Sample& sample : batch.samples) sample.type = kType;
  batch.sample_types = {{kType, {"inuse_space", "bytes", Aggregation::kLast}}};
  return batch;
}

GaugeConformance::MinuteSums GaugeConformance::Minutes(TimeRange range) {
  MinuteSums minutes;
  const absl::Status scanned = Reader()->ScanSums(range, [&](const SumColumns& columns) {
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      auto& [value, count] = minutes[{MinuteOf(columns.minute) - MinuteOf(kNow), columns.processes[i].value}];
      value += columns.values[i];
      count += columns.counts[i];
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(scanned.ok()) << scanned;
  return minutes;
}

namespace {

TEST_P(GaugeConformance, AMinuteHasTheLastSnapshotOfEachProcess) {
  TestCollector collector("node-a");
  const ThreadRef a = collector.Thread(1, "a"), b = collector.Thread(2, "b");
  const NodeRef one = collector.Stack({1}), two = collector.Stack({1, 2}), three = collector.Stack({1, 3});
  // The second snapshot of `a` lacks one stack of the first. One of its parts comes with another batch. A part of the
  // first snapshot comes after both.
  collector.Add(At(10), a, one, 100);
  collector.Add(At(40), a, one, 30);
  collector.Add(At(20), b, one, 5);
  collector.Add(At(70), b, one, 7);
  Commit(AsGauge(collector.Take(At(80))));
  collector.Add(At(40), a, two, 4);
  collector.Add(At(10), a, three, 900);
  Commit(AsGauge(collector.Take(At(81))));

  const std::map<TypeNo, SampleTypeInfo> types = Reader()->SampleTypes().value();
  ASSERT_EQ(types.size(), 1u);
  EXPECT_TRUE(types.begin()->second.is_gauge());
  const MinuteSums expected = {{{0, 1}, {34, 2}}, {{0, 2}, {5, 1}}, {{1, 2}, {7, 1}}};
  EXPECT_EQ(Minutes(), expected) << "from samples";
  EXPECT_EQ(Minutes({At(0), At(30)}), (MinuteSums{{{0, 1}, {1000, 2}}, {{0, 2}, {5, 1}}}))
      << "the last value of each minute in the range";
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(Minutes(), expected) << "closed";
  EXPECT_EQ(CountSamples(*Reader()), 6u) << "all samples stay, because exporters send them";
  Reopen();
  EXPECT_TRUE(Reader()->SampleTypes().value().begin()->second.is_gauge());
  options_.raw_age_ns = kNsPerMinute;
  Reopen();
  Maintain();
  EXPECT_EQ(CountSamples(*Reader()), 0u);
  EXPECT_EQ(Minutes(), expected) << "the sums stay when the samples are removed";
}

TEST_P(GaugeConformance, ASnapshotOfAClosedMinuteDoesNotAddUpWithItsLast) {
  TestCollector collector("node-a");
  const ThreadRef a = collector.Thread(1, "a"), b = collector.Thread(2, "b");
  const NodeRef one = collector.Stack({1});
  collector.Add(At(30), a, one, 50);
  Commit(AsGauge(collector.Take(At(31))));
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  collector.Add(At(10), a, one, 3);
  collector.Add(At(10), b, one, 7);
  Commit(AsGauge(collector.Take(At(601))));
  EXPECT_EQ(Minutes(), (MinuteSums{{{0, 1}, {50, 1}}, {{0, 2}, {7, 1}}}));
}

// A second sender cannot turn the first sender's gauge into sums, or CPU time into a gauge.
TEST_P(GaugeConformance, SumsAndGaugesOfOneNameAreKeptApart) {
  TestCollector first("node-a", 1), second("node-b", 2);
  first.Add(At(1), first.Thread(1, "a"), first.Stack({1}), 10);
  Commit(AsGauge(first.Take(At(2))));
  for (int64_t at : {1, 2}) second.Add(At(at), second.Thread(1, "a"), second.Stack({1}), 10);
  RowBatch batch = AsGauge(second.Take(At(2)));
  batch.sample_types[0].info.aggregation = Aggregation::kSum;
  batch.sample_types.push_back({static_cast<SampleType>(201), {"cpu", "nanoseconds", Aggregation::kLast}});
  batch.samples.push_back(batch.samples[0]);
  batch.samples.back().type = static_cast<SampleType>(201);
  Commit(batch);
  const SampleTypeInfo gauge{"inuse_space", "bytes", Aggregation::kLast}, sum{"inuse_space", "bytes"};
  std::map<SampleTypeInfo, uint64_t> values;
  auto reader = Reader();
  const std::map<TypeNo, SampleTypeInfo> types = reader->SampleTypes().value();
  ASSERT_TRUE(reader
                  ->ScanSums({At(0), At(60)},
                             [&](const SumColumns& columns) {
                               for (uint64_t value : columns.values) values[types.at(columns.type)] += value;
                               return absl::OkStatus();
                             })
                  .ok());
  EXPECT_EQ(values, (std::map<SampleTypeInfo, uint64_t>{
                        {gauge, 10}, {sum, 20}, {{"cpu", "nanoseconds", Aggregation::kLast}, 10}}));
}

}  // namespace
}  // namespace tributary::store
