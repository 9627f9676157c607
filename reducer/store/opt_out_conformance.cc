#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "reducer/store/store_conformance_testing.h"

// Samples and events of containers that opted out. The store drops them, and counts them as lost.

namespace tributary::store {

void OptOutConformance::ExpectExact() {
  const NodeStatus status = Status();
  EXPECT_EQ(status.accounting.captured, status.stored + status.accounting.TotalLost());
  EXPECT_TRUE(status.accounting.LostFor(LossReason::kOptedOutAtReducer).empty()) << "readers see one reason";
}

ThreadRef OptOutConformance::ThreadIn(TestCollector& collector, int pid, const std::string& container) {
  Dictionary& dictionary = collector.dictionary();
  Process process;
  process.key = ProcessKey{Pid{pid}, pid, 0};
  process.comm = dictionary.InternString("app");
  process.container_id = dictionary.InternString(container);
  return dictionary.InternThread({dictionary.InternProcess(process), Tid{pid}, dictionary.InternString("main")});
}

namespace {

const SampleTypeInfo kOffCpu = InfoOf(*FindSampleType(SampleType::kOffCpu));

TEST_P(OptOutConformance, DropsSamplesAndEventsAndCountsThemOnce) {
  list_.off = {"secret", "c0ffee"};
  TestCollector collector("node-a");
  const NodeRef stack = collector.Stack({1, 2});
  for (int i = 0; i < 3; ++i) collector.Add(At(-3 + i), ThreadIn(collector, 1, "secret"), stack);
  collector.Add(At(-1), ThreadIn(collector, 2, "public"), stack);
  collector.Add(At(-1), collector.Event(ProcessEventKind::kStart, 7, "app"));
  collector.Lose(LossReason::kOptedOut, 5);  // on the node
  RowBatch batch = collector.Take(At(0));
  batch.samples[2].type = SampleType::kOffCpu;
  ASSERT_TRUE(batch.accounting.captured.Split(SampleType::kOffCpu, 1));
  for (int i = 0; i < 2; ++i) {
    Commit(i == 0 ? batch : collector.Resend(batch));
    EXPECT_EQ(OptedOut().cpu(), 7u);
    EXPECT_EQ(OptedOut().Of(kOffCpu), 1u);
    EXPECT_EQ(OptedOut().events(), 1u);
    EXPECT_EQ(Status().stored.total(), 1u);
    EXPECT_EQ(Status().stored.events(), 0u);
    ExpectExact();
  }
  EXPECT_EQ(list_.node, "node-a");
  EXPECT_EQ(list_.asked, 3) << "two processes and one container of events, once each";
  EXPECT_EQ(Reader()->Processes(kAlways, nullptr)->size(), 1u) << "the process that opted out is not stored";
  EXPECT_EQ(Count("tributary_reducer_opted_out_samples_total"), 3u);
  EXPECT_EQ(Count("tributary_reducer_opted_out_events_total"), 1u);
  EXPECT_EQ(Count("tributary_reducer_committed_samples_total"), 1u);
  EXPECT_TRUE(refusals_.Of("node-a").empty()) << "it is not a fault of the node";
}

// The node's next totals replace its earlier ones. The reducer's own count must survive this, and a restart.
TEST_P(OptOutConformance, ASessionKeepsItsCount) {
  list_.off = {"secret"};
  TestCollector collector("node-a");
  const NodeRef stack = collector.Stack({1});
  collector.Add(At(-2), ThreadIn(collector, 1, "secret"), stack);
  Commit(collector.Take(At(-1)));
  collector.Lose(LossReason::kOptedOut, 2);
  Commit(collector.Take(At(0)));
  EXPECT_EQ(OptedOut().total(), 3u);
  Reopen();
  collector.StartGeneration();
  collector.Lose(LossReason::kOptedOut, 1);
  collector.Add(At(-1), ThreadIn(collector, 1, "secret"), collector.Stack({1}));
  Commit(collector.Take(At(0)));
  EXPECT_EQ(OptedOut().total(), 5u);
  ExpectExact();
}

TEST_P(OptOutConformance, AFailedCommitCountsNothing) {
  list_.off = {"secret"};
  TestCollector collector("node-a");
  collector.Add(At(-1), ThreadIn(collector, 2, "public"), collector.Stack({1}));
  Commit(collector.Take(At(0)));
  collector.Add(At(-1), ThreadIn(collector, 1, "secret"), collector.Stack({1}));
  const RowBatch batch = collector.Take(At(0));
  backend_->FailCommits(true);
  EXPECT_FALSE(writer_->Commit({&batch, 1}).ok());
  backend_->FailCommits(false);
  EXPECT_EQ(Count("tributary_reducer_opted_out_samples_total"), 0u);
  Commit(batch);
  EXPECT_EQ(OptedOut().total(), 1u);
  ExpectExact();
}

// Only the store counts what it drops: a node's number for this reason would be counted twice.
TEST_P(OptOutConformance, ANodeCannotReportTheReducersCount) {
  TestCollector collector("node-a");
  collector.Add(At(-1), ThreadIn(collector, 1, "public"), collector.Stack({1}));
  RowBatch batch = collector.Take(At(0));
  batch.accounting.LostFor(LossReason::kOptedOutAtReducer) = 7;
  Commit(batch);
  EXPECT_EQ(OptedOut().total(), 0u);
  ExpectExact();
}

TEST_P(OptOutConformance, AKilledCollectorsDroppedSamplesAreNotMissing) {
  list_.off = {"secret"};
  TestCollector killed("node-a", 1), next("node-a", 2);
  for (int i = 0; i < 2; ++i) killed.Add(At(-2), ThreadIn(killed, 1, "secret"), killed.Stack({1}));
  Commit(killed.Take(At(-1)));
  next.Add(At(-1), ThreadIn(next, 2, "public"), next.Stack({1}));
  RowBatch batch = next.Take(At(0));
  batch.closes.push_back({killed.info().session_id, 5, LossReason::kCollectorKilled});
  Commit(batch);
  EXPECT_EQ(OptedOut().total(), 2u);
  EXPECT_EQ(Status().accounting.LostFor(LossReason::kCollectorKilled).total(), 3u);
  ExpectExact();
}

// The losses of an exporter's records are the totals that the status shows.
TEST_P(OptOutConformance, LossRecordsHaveOneReason) {
  list_.off = {"secret"};
  TestCollector collector("node-a");
  collector.Add(At(-1), ThreadIn(collector, 1, "secret"), collector.Stack({1}));
  collector.Lose(LossReason::kOptedOut, 2);
  Commit(collector.Take(At(0)));
  clock_.Advance(kLossWindowNs);
  Maintain(1);
  int64_t samples = 0;
  EXPECT_TRUE(Reader()
                  ->ScanCommittedLosses(0, 100,
                                        [&](const LossRecord& loss) {
                                          EXPECT_EQ(ReasonText(loss), "opted_out");
                                          EXPECT_EQ(loss.reason, LossReason::kOptedOut);
                                          samples += loss.samples;
                                          return absl::OkStatus();
                                        })
                  .ok());
  EXPECT_EQ(samples, 3);
}

// Opt-outs come and go, on the node and here, and batches are repeated, some after a restart of the reducer.
TEST_P(OptOutConformance, TheLawHoldsWhileOptOutsChange) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
    TestCollector collector("node-" + std::to_string(seed), static_cast<uint8_t>(seed));
    list_.off.clear();
    uint64_t dropped = 0, told = 0, stored = 0;
    for (int step = 0; step < 60; ++step) {
      const std::string container = "c" + std::to_string(random() % 4);
      if (chance(30)) list_.off.erase(container);
      if (chance(30)) list_.off.insert(container);
      for (int i = 0; i < 5; ++i) {
        const int pid = static_cast<int>(random() % 8) + 1;
        const std::string of = "c" + std::to_string(pid % 4);
        collector.Add(At(-1), ThreadIn(collector, pid, of), collector.Stack({random() % 3 + 1}));
        ++(list_.off.contains(of) ? dropped : stored);
      }
      if (chance(40)) {
        collector.Lose(LossReason::kOptedOut, 3);
        told += 3;
      }
      const RowBatch batch = collector.Take(At(0));
      Commit(batch);
      if (chance(20)) Commit(collector.Resend(batch));
      if (chance(10)) {
        Reopen();
        collector.StartGeneration();
      }
    }
    const std::vector<NodeStatus> nodes = Reader()->Nodes().value();
    for (const NodeStatus& node : nodes) {
      EXPECT_EQ(node.accounting.captured, node.stored + node.accounting.TotalLost());
      if (node.node_id != collector.info().node_id) continue;
      EXPECT_EQ(node.stored.total(), stored);
      EXPECT_EQ(node.accounting.LostFor(LossReason::kOptedOut).total(), dropped + told);
    }
  }
}

}  // namespace
}  // namespace tributary::store
