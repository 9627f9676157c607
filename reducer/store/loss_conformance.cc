#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "reducer/store/store_conformance_testing.h"

// The changes of loss totals that a reader gets back, in the order of their commits.

namespace tributary::store {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> LossConformance::Committed(int64_t* cursor, size_t losses_max) {
  std::vector<std::string> records;
  const auto reader = Reader();
  const absl::StatusOr<int64_t> next = reader->ScanCommittedLosses(*cursor, losses_max, [&](const LossRecord& loss) {
    EXPECT_LE(loss.first, loss.last);
    EXPECT_GE(loss.first, kNow);
    EXPECT_LE(loss.last, clock_.Unix());
    records.push_back(fmt::format("{} {} {} {}", loss.node_id, loss.type == SampleTypeInfo{} ? "event" : loss.type.name,
                                  std::string(ReasonText(loss)), loss.samples));
    return absl::OkStatus();
  });
  EXPECT_TRUE(next.ok()) << next.status();
  *cursor = next.value_or(0);
  return records;
}

void LossConformance::ExpectTotals() {
  using Series = std::tuple<std::string, SampleTypeInfo, LossReason>;
  std::map<Series, int64_t> sums, totals;
  const auto reader = Reader();
  ASSERT_TRUE(reader
                  ->ScanCommittedLosses(0, 100'000,
                                        [&](const LossRecord& loss) {
                                          sums[{loss.node_id, loss.type, *loss.reason}] += loss.samples;
                                          return absl::OkStatus();
                                        })
                  .ok());
  std::erase_if(sums, [](const auto& sum) { return sum.second == 0; });
  const std::vector<NodeStatus> nodes = reader->Nodes().value();
  for (const NodeStatus& node : nodes) {
    for (uint8_t i = 0; i < kLossReasonCount; ++i) {
      const NamedSampleCounts& lost = node.accounting.lost[i];
      const auto add = [&](const SampleTypeInfo& type, uint64_t samples) {
        if (samples != 0) totals[{node.node_id, type, static_cast<LossReason>(i)}] += static_cast<int64_t>(samples);
      };
      add(InfoOf(*FindSampleType(SampleType::kCpu)), lost.cpu());
      for (const auto& [type, samples] : lost.parts()) add(type, samples);
    }
  }
  EXPECT_EQ(sums, totals);
}

namespace {

TEST_P(LossConformance, ARecordIsTheChangeOfATotal) {
  TestCollector collector("node-a");
  collector.Lose(LossReason::kRingFull, 3);
  SampleCounts events;
  events.AddEvents(2);
  collector.Lose(LossReason::kMissed, events);
  Commit(collector.Take(At(0)));
  Settle();
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu ring_full 3", "node-a event missed 2"));
  EXPECT_THAT(Committed(&cursor), IsEmpty());
  collector.Lose(LossReason::kRingFull, 4);
  Commit(collector.Take(At(0)));
  Commit(collector.Take(At(0)));  // nothing new is lost
  Settle();
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu ring_full 4"));
  ExpectTotals();
}

TEST_P(LossConformance, ADuplicateBatchHasNoRecord) {
  TestCollector collector("node-a");
  collector.Lose(LossReason::kRingFull, 3);
  const RowBatch batch = collector.Take(At(0));
  Commit(batch);
  Settle();
  int64_t cursor = 0;
  Committed(&cursor);
  Commit(batch);
  Settle();
  EXPECT_THAT(Committed(&cursor), IsEmpty());
  ExpectTotals();
}

TEST_P(LossConformance, SamplesThatArriveAfterAllReduceTheLossOfAClosedSession) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  const auto add = [](TestCollector& collector, int samples) {
    for (int i = 0; i < samples; ++i) collector.Add(kNow, collector.Thread(1, "t"), collector.Stack({1}));
  };
  add(killed, 10);
  Commit(killed.Take(kNow));
  add(next, 1);
  RowBatch closing = next.Take(kNow);
  closing.closes.push_back({killed.info().session_id, 17, LossReason::kCollectorKilled});
  Commit(closing);
  Settle();
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu collector_killed 7"));
  add(killed, 5);
  Commit(killed.Take(kNow));
  Settle();
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu collector_killed -5"));
  ExpectTotals();
}

TEST_P(LossConformance, SamplesThatAreTooOldAreLosses) {
  TestCollector collector("node-a");
  collector.Add(At(-30 * 86'400), collector.Thread(1, "t"), collector.Stack({1}));
  Commit(collector.Take(At(-30 * 86'400)));
  Settle();
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu too_old 1"));
  ExpectTotals();
}

TEST_P(LossConformance, AFailedCommitHasNoRecord) {
  TestCollector collector("node-a");
  collector.Lose(LossReason::kRingFull, 3);
  collector.Add(kNow, collector.Thread(1, "t"), collector.Stack({1}));
  const RowBatch batch = collector.Take(At(0));
  backend_->FailCommits(true);
  EXPECT_FALSE(writer_->Commit({&batch, 1}).ok());
  backend_->FailCommits(false);
  Settle();
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor), IsEmpty());
  Commit(batch);
  Settle();
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu ring_full 3"));
  ExpectTotals();
}

TEST_P(LossConformance, RecordsSurviveARestart) {
  TestCollector collector("node-a"), other("node-b", 9);
  collector.Lose(LossReason::kRingFull, 3);
  Commit(collector.Take(At(0)));
  Reopen();
  other.Lose(LossReason::kBadRecord, 1);
  Commit(other.Take(At(0)));
  Settle();
  int64_t cursor = 0;
  EXPECT_THAT(Committed(&cursor, 1), ElementsAre("node-a cpu ring_full 3"));
  EXPECT_THAT(Committed(&cursor, 1), ElementsAre("node-b cpu bad_record 1"));
  ExpectTotals();
}

TEST_P(LossConformance, ACursorOfOtherDataStartsOver) {
  TestCollector collector("node-a");
  collector.Lose(LossReason::kRingFull, 3);
  Commit(collector.Take(At(0)));
  Settle();
  int64_t cursor = 1'000;
  EXPECT_THAT(Committed(&cursor), ElementsAre("node-a cpu ring_full 3"));
}

}  // namespace
}  // namespace tributary::store
