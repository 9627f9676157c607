#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reducer/store/store_conformance_testing.h"

// Samples and events that are old when they arrive, and impossible times.

namespace tributary::store {

std::vector<UnixNs> AgeConformance::EventTimes() {
  std::vector<UnixNs> times;
  EXPECT_TRUE(Reader()
                  ->ScanEvents(kAlways,
                               [&](const ProcessEventRow& event) {
                                 times.push_back(event.time);
                                 return absl::OkStatus();
                               })
                  .ok());
  return times;
}

void AgeConformance::ExpectExact() {
  const NodeStatus status = Status();
  EXPECT_EQ(status.accounting.captured, status.stored + status.accounting.TotalLost());
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const SampleTypeInfo kOffCpu = InfoOf(*FindSampleType(SampleType::kOffCpu));

// Changes the type of the batch's sample `i`, which counts as captured since the last batch.
void MakeOffCpu(RowBatch* batch, size_t i) {
  batch->samples[i].type = SampleType::kOffCpu;
  ASSERT_TRUE(batch->accounting.captured.Split(SampleType::kOffCpu, 1));
}

TEST_P(AgeConformance, DataOlderThanRetentionCountAsLost) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const NodeRef stack = collector.Stack({1, 2});
  for (int i = 0; i < 3; ++i) collector.Add(At(-30 * kDay + i), thread, stack);
  collector.Add(At(-30 * kDay), collector.Event(ProcessEventKind::kStart, 7, "old"));
  collector.Lose(LossReason::kRingFull, 5);
  RowBatch batch = collector.Take(At(-30 * kDay + 5));
  MakeOffCpu(&batch, 2);
  for (int i = 0; i < 2; ++i) {
    Commit(i == 0 ? batch : collector.Resend(batch));
    const NamedAccounting accounting = Status().accounting;
    EXPECT_EQ(accounting.LostFor(LossReason::kTooOld).cpu(), 2u);
    EXPECT_EQ(accounting.LostFor(LossReason::kTooOld).Of(kOffCpu), 1u);
    EXPECT_EQ(accounting.LostFor(LossReason::kTooOld).events(), 1u);
    EXPECT_EQ(accounting.LostFor(LossReason::kRingFull).total(), 5u);
    EXPECT_TRUE(Status().stored.empty());
    ExpectExact();
  }
  EXPECT_THAT(FromSums(kAlways), IsEmpty());
  EXPECT_THAT(FromSamples(kAlways), IsEmpty());
  EXPECT_THAT(EventTimes(), IsEmpty());
  EXPECT_EQ(Reader()->LoadTrie(DayOf(At(-30 * kDay))).value().parents.size(), 1u) << "the day was not opened";
  EXPECT_THAT(Reader()->SampleTypes().value(), IsEmpty());
  EXPECT_EQ(Status().endings[static_cast<size_t>(Ending::kComplete)], 0u);
  EXPECT_EQ(Count("tributary_reducer_committed_samples_total"), 0u);
  EXPECT_EQ(Count("tributary_reducer_committed_events_total"), 0u);
  EXPECT_EQ(Count("tributary_reducer_too_old_samples_total"), 3u);
  EXPECT_EQ(Count("tributary_reducer_too_old_events_total"), 1u);
  EXPECT_EQ(refusals_.Of("node-a")["too_old"], 4u);
}

// The collector's next totals replace its earlier ones. The reducer's own count must survive this, and a restart.
TEST_P(AgeConformance, ASessionKeepsItsTooOldSamples) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-8 * kDay), thread, collector.Stack({1}));
  Commit(collector.Take(At(-8 * kDay)));
  collector.Add(At(-1), thread, collector.Stack({1}));
  collector.Lose(LossReason::kRingFull, 2);
  Commit(collector.Take(At(0)));
  Reopen();
  collector.StartGeneration();
  collector.Add(At(-9 * kDay), thread, collector.Stack({1}));
  collector.Lose(LossReason::kRingFull, 1);
  Commit(collector.Take(At(-9 * kDay)));
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kTooOld).total(), 2u);
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kRingFull).total(), 3u);
  EXPECT_EQ(Status().stored.total(), 1u);
  ExpectExact();
}

TEST_P(AgeConformance, AFailedCommitCountsNothingAsTooOld) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-1), thread, collector.Stack({1}));
  Commit(collector.Take(At(0)));
  collector.Add(At(-8 * kDay), thread, collector.Stack({1}));
  const RowBatch batch = collector.Take(At(-8 * kDay));
  backend_->FailCommits(true);
  EXPECT_FALSE(writer_->Commit({&batch, 1}).ok());
  backend_->FailCommits(false);
  EXPECT_EQ(Count("tributary_reducer_too_old_samples_total"), 0u);
  Commit(batch);
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kTooOld).total(), 1u);
  ExpectExact();
}

// Only the reducer knows its retention.
TEST_P(AgeConformance, ACollectorCannotReportTooOldSamples) {
  for (const SourceKind kind : {SourceKind::kSession, SourceKind::kImport}) {
    TestCollector collector("node-a", kind == SourceKind::kSession ? 1 : 2);
    collector.Add(At(-8 * kDay), collector.Thread(1, "a"), collector.Stack({1}));
    RowBatch batch = collector.Take(At(-8 * kDay));
    batch.accounting.LostFor(LossReason::kTooOld) = 7;
    if (kind == SourceKind::kImport) {
      batch.source = {kind, "import"};
      batch.sequence = 0;
      batch.generation = 0;
    }
    Commit(batch);
  }
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kTooOld).total(), 2u);
  ExpectExact();
}

TEST_P(AgeConformance, AKilledCollectorsTooOldSamplesAreNotMissing) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  for (int i = 0; i < 2; ++i) killed.Add(At(-8 * kDay), killed.Thread(1, "a"), killed.Stack({1}));
  Commit(killed.Take(At(-8 * kDay)));
  next.Add(At(-1), next.Thread(1, "a"), next.Stack({1}));
  RowBatch batch = next.Take(At(0));
  batch.closes.push_back({killed.info().session_id, 5, LossReason::kCollectorKilled});
  Commit(batch);
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kTooOld).total(), 2u);
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kCollectorKilled).total(), 3u);
  ExpectExact();
}

TEST_P(AgeConformance, EventsHaveARetentionOfTheirOwn) {
  options_.sum_age_ns = 30 * kNsPerDay;
  options_.event_age_ns = 2 * kNsPerDay;
  Reopen();
  TestCollector collector("node-a");
  collector.Add(At(-3 * kDay), collector.Thread(1, "a"), collector.Stack({1}));
  collector.Add(At(-3 * kDay), collector.Event(ProcessEventKind::kStart, 7, "old"));
  Commit(collector.Take(At(-3 * kDay)));
  collector.Add(At(-kDay), collector.Event(ProcessEventKind::kExit, 7, "newer"));
  Commit(collector.Take(At(-kDay)));
  EXPECT_EQ(Status().stored.total(), 1u);
  EXPECT_THAT(EventTimes(), ElementsAre(At(-kDay)));
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kTooOld).events(), 1u);
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kTooOld).total(), 0u);
  ExpectExact();
}

// Samples older than --retention-raw are in sums at once. They are never in chunks, not even until the next
// maintenance.
TEST_P(AgeConformance, OldSamplesGoOnlyIntoSums) {
  options_.raw_age_ns = 60 * kNsPerMinute;
  Reopen();
  Maintain();  // closes minutes
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 30; ++i) collector.Add(At(-7'200 + i), thread, collector.Stack({1}));
  Commit(collector.Take(At(-7'000)));
  collector.Add(At(-1), thread, collector.Stack({1}));
  Commit(collector.Take(At(0)));
  EXPECT_EQ(Total(FromSamples(kAlways)), 1u);
  const auto check = [&] {
    EXPECT_EQ(Total(FromSums(kAlways)), 31u);
    // Adjacent ranges share no sample, as after the samples of a minute have expired.
    uint64_t total = 0;
    for (int64_t at = -7'300; at < 60; at += 17) total += Total(FromSums({At(at), At(at + 17)}));
    EXPECT_EQ(total, 31u);
    EXPECT_EQ(Status().stored.total(), 31u);
    ExpectExact();
  };
  check();
  EXPECT_EQ(Count("tributary_reducer_sums_only_samples_total"), 30u);
  Maintain();
  Reopen();
  check();
}

// An exporter never gets these samples, so it counts them like samples that have expired.
TEST_P(AgeConformance, SamplesInSumsOnlyCountAsExpiredForExporters) {
  options_.raw_age_ns = 60 * kNsPerMinute;
  Reopen();
  Maintain();
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const auto commit = [&](UnixNs time) {
    collector.Add(time, thread, collector.Stack({1}));
    Commit(collector.Take(time));
  };
  uint64_t visited = 0, expired = 0;
  const auto scan = [&](const Cursor& cursor) {
    const CommittedScan result = Reader()
                                     ->ScanCommitted(cursor, 100,
                                                     [&](const SampleColumns& columns, const Cursor&) {
                                                       visited += columns.times.size();
                                                       return absl::OkStatus();
                                                     })
                                     .value();
    expired += result.expired_samples;
    return result.next;
  };
  commit(At(-2));
  Cursor cursor = scan({});
  for (int i = 0; i < 3; ++i) commit(At(-7'200));
  commit(At(-1));
  cursor = scan(cursor);
  EXPECT_EQ(visited, 2u);
  EXPECT_EQ(expired, 3u);
  commit(At(-7'200));
  Reopen();  // the count of the last samples is not only in memory
  collector.StartGeneration();
  commit(At(-1));
  cursor = scan(cursor);
  EXPECT_EQ(visited, 3u);
  EXPECT_EQ(expired, 4u);
  EXPECT_EQ(cursor.samples, 7u);
}

TEST_P(AgeConformance, ATimeInTheFutureBecomesTheTimeOfTheBatch) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(600), thread, collector.Stack({1}));
  collector.Add(At(601), thread, collector.Stack({1}));
  collector.Add(At(601), collector.Event(ProcessEventKind::kStart, 1, "future"));
  Commit(collector.Take(At(-1)));
  EXPECT_EQ(Total(FromSamples({At(600), At(601)})), 1u);
  EXPECT_EQ(Total(FromSamples({At(-1), At(0)})), 1u);
  EXPECT_THAT(EventTimes(), ElementsAre(At(-1)));
  EXPECT_EQ(Count("tributary_reducer_clamped_times_total"), 2u);
  EXPECT_EQ(refusals_.Of("node-a")["clamped_times"], 2u);
}

// The whole batch moves to the reducer's time, and the distances between its samples stay.
TEST_P(AgeConformance, ABatchOfAClockThatIsAheadMovesToTheReducersTime) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(600 - 3), thread, collector.Stack({1}));
  Commit(collector.Take(At(600)));
  EXPECT_EQ(Count("tributary_reducer_clamped_times_total"), 0u) << "ten minutes are allowed";
  collector.Add(At(1'800 - 3), thread, collector.Stack({1}));
  collector.Add(At(1'800 - 2), thread, collector.Stack({1}));
  Commit(collector.Take(At(1'800)));
  EXPECT_EQ(Total(FromSamples({At(-3), At(-2)})), 1u);
  EXPECT_EQ(Total(FromSamples({At(-2), At(-1)})), 1u);
  EXPECT_EQ(Count("tributary_reducer_clamped_times_total"), 2u);
}

}  // namespace

}  // namespace tributary::store
