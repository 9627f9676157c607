#include <gtest/gtest.h>

#include "reducer/store/store_conformance_testing.h"

// Losses of sessions that can no longer report.

namespace tributary::store {

RowBatch ClosedSessionConformance::BatchOf(TestCollector& collector, int samples, uint64_t on_the_way) {
  for (int i = 0; i < samples; ++i) collector.Add(kNow, collector.Thread(1, "t"), collector.Stack({1}));
  RowBatch batch = collector.Take(kNow);
  batch.accounting.captured += on_the_way;
  return batch;
}

RowBatch ClosedSessionConformance::Closing(RowBatch batch, const TestCollector& ended, uint64_t captured,
                                           LossReason reason) {
  batch.closes.push_back({ended.info().session_id, captured, reason});
  return batch;
}

NodeStatus ClosedSessionConformance::Status() {
  NodeStatus all;
  const std::vector<NodeStatus> nodes = Reader()->Nodes().value();
  for (const NodeStatus& node : nodes) {
    all.accounting += node.accounting;
    all.stored += node.stored;
  }
  return all;
}

void ClosedSessionConformance::ExpectExact(uint64_t captured) {
  const NodeStatus status = Status();
  EXPECT_EQ(status.accounting.captured.total(), captured);
  EXPECT_EQ(status.accounting.captured, status.stored + status.accounting.TotalLost());
}

namespace {

TEST_P(ClosedSessionConformance, CountsMissingSamplesAsLostOnce) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  killed.Lose(LossReason::kRingFull, 3);
  Commit(BatchOf(killed, 10, 4));
  EXPECT_EQ(Status().accounting.captured - Status().stored - Status().accounting.TotalLost(), 4u) << "on the way";
  Commit(Closing(BatchOf(next, 5), killed, 20));
  ExpectExact(25);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 7u);
  EXPECT_EQ(Lost(LossReason::kRingFull), 3u);
  // A repeated report changes nothing: in a batch of its own, with fewer samples, or after a restart.
  Commit(Closing(BatchOf(next, 0), killed, 20));
  Commit(Closing(BatchOf(next, 0), killed, 2));
  ExpectExact(25);
  Reopen();
  ExpectExact(25);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 7u);
}

TEST_P(ClosedSessionConformance, SamplesReceivedFromAnotherSessionAreNotLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10, 4));  // the four went to the spool, and come with the next session
  Commit(Closing(BatchOf(next, 4), killed, 10));
  ExpectExact(14);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
}

TEST_P(ClosedSessionConformance, AStopHasItsOwnReason) {
  TestCollector stopped("node-a", 1), next("node-a", 2);
  Commit(BatchOf(stopped, 10));
  Commit(Closing(BatchOf(next, 1), stopped, 15, LossReason::kShutdown));
  EXPECT_EQ(Lost(LossReason::kShutdown), 5u);
  ExpectExact(16);
}

TEST_P(ClosedSessionConformance, AStoredBatchWithoutAnAckIsNotLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10));
  Commit(BatchOf(killed, 7));
  Commit(Closing(BatchOf(next, 1), killed, 17));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
  ExpectExact(18);
}

TEST_P(ClosedSessionConformance, ALateBatchFromASpoolIsNotLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10));
  RowBatch spooled = BatchOf(killed, 6);
  Commit(Closing(BatchOf(next, 1), killed, 20));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 10u);
  Commit(spooled);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 4u);
  ExpectExact(21);
}

TEST_P(ClosedSessionConformance, AnUnknownSessionIsLostAsAWhole) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(Closing(BatchOf(next, 1), killed, 12));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 12u);
  ExpectExact(13);
  // Retention must not remove the session at once.
  ASSERT_TRUE(writer_->Maintain(kNow).ok());
  ExpectExact(13);
  // A batch that the session had sent arrives after all.
  Commit(BatchOf(killed, 5));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 7u);
  ExpectExact(13);
}

TEST_P(ClosedSessionConformance, OneSessionAccountsForAllUnreportedSessions) {
  TestCollector first("node-a", 1), second("node-a", 2), elsewhere("node-a", 9), next("node-a", 3);
  Commit(BatchOf(first, 10, /*on_the_way=*/5));
  Commit(BatchOf(first, 7, /*on_the_way=*/3));  // its node never saw the acknowledgement
  Commit(BatchOf(second, 4, /*on_the_way=*/2));
  const auto closing = [&](int samples) {
    RowBatch batch = Closing(BatchOf(next, samples), second, 36);
    batch = Closing(std::move(batch), first, 10);
    return Closing(std::move(batch), elsewhere, 2);
  };
  Commit(closing(1));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 36u - 17 - 4 - 2);
  ExpectExact(36 - 2 + 1);
  Commit(closing(1));
  ExpectExact(36 - 2 + 2);
  // The session that reported the others was killed too, before it received an acknowledgement.
  TestCollector last("node-a", 4);
  RowBatch again = Closing(BatchOf(last, 1), next, 36 + 8);
  again = Closing(std::move(again), second, 4);
  again = Closing(std::move(again), first, 10);
  Commit(Closing(std::move(again), elsewhere, 2));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 36u - 17 - 4 - 2 + 8 - 2);
  ExpectExact(36 - 2 + 8 + 1);
}

TEST_P(ClosedSessionConformance, SamplesOnTheWayMayHaveGoneToAnotherSession) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10, /*on_the_way=*/50));
  Commit(Closing(BatchOf(next, 40), killed, 20));  // 40 of the 50 were in the spool
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 10u);
  ExpectExact(20 + 40);
}

TEST_P(ClosedSessionConformance, OneGroupMayHoldBothSessions) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  std::vector<RowBatch> group;
  group.push_back(BatchOf(killed, 10));
  group.push_back(Closing(BatchOf(next, 1), killed, 12));
  ASSERT_TRUE(writer_->Commit(group).ok());
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 2u);
  ExpectExact(13);
}

TEST_P(ClosedSessionConformance, OnlyTheSameNodeMayCloseASession) {
  TestCollector victim("node-a", 1), other("node-b", 2);
  Commit(BatchOf(victim, 10));
  Commit(Closing(BatchOf(other, 1), victim, 1'000'000));
  Commit(Closing(BatchOf(other, 1), other, 1'000'000));
  ExpectExact(12);
  EXPECT_EQ(Refused(), 2u);
}

TEST_P(ClosedSessionConformance, ANodeCannotFillTheTableWithIds) {
  TestCollector hostile("node-a", 1);
  for (uint32_t i = 0; i < 100; ++i) {
    RowBatch batch = BatchOf(hostile, 0);
    ClosedSession made_up{.captured = 1};
    made_up.session_id[0] = static_cast<uint8_t>(i);
    made_up.session_id[1] = 0xff;
    batch.closes.push_back(made_up);
    Commit(std::move(batch));
  }
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 64u);
  EXPECT_EQ(Refused(), 36u);
}

TEST_P(ClosedSessionConformance, AFailedCommitClosesNothing) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10, 5));
  backend_->FailCommits(true);
  RowBatch batch = Closing(BatchOf(next, 1), killed, 15);
  std::vector<RowBatch> group = {Closing(BatchOf(next, 0), killed, 15), batch};
  EXPECT_FALSE(writer_->Commit(group).ok());
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
  backend_->FailCommits(false);
  TestCollector again("node-a", 3);
  Commit(BatchOf(again, 1));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
}

// Returns the batch as closed `up_ns` after its machine's boot.
RowBatch OfBoot(RowBatch batch, std::string boot_id, int64_t up_ns) {
  auto info = std::make_shared<NodeInfo>(*batch.node);
  info->boot_id = std::move(boot_id);
  batch.node = info;
  const int64_t shift = up_ns - batch.clock.monotonic.value;
  batch.clock.monotonic.value += shift;
  for (Sample& sample : batch.samples) sample.time.value += shift;
  return batch;
}

TEST_P(ClosedSessionConformance, ClosesSessionsOfAnEarlierBoot) {
  TestCollector before("node-a", 1), also_before("node-a", 2), other("node-b", 3), after("node-a", 4);
  Commit(OfBoot(BatchOf(before, 10, 3), "boot-1", 10 * kNsPerDay));
  Commit(OfBoot(BatchOf(other, 10, 3), "boot-9", 10 * kNsPerDay));
  // The writer has one session in memory from the same group. It must look for the other session in the file.
  Reopen();
  std::vector<RowBatch> group;
  group.push_back(OfBoot(BatchOf(also_before, 10, 2), "boot-1", 10 * kNsPerDay));
  group.push_back(OfBoot(BatchOf(after, 1), "boot-2", 2 * kNsPerDay));
  ASSERT_TRUE(writer_->Commit(group).ok());
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 5u) << "the session of the other node stays open";
  // Old sessions appear late, from a spool. They do not end the current boot.
  TestCollector late("node-a", 5);
  Commit(OfBoot(BatchOf(after, 1, 8), "boot-2", 2 * kNsPerDay));
  Commit(OfBoot(BatchOf(late, 1), "boot-1", 10 * kNsPerDay));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 5u);
}

TEST_P(ClosedSessionConformance, ClosingMovesWithItsNode) {
  TestCollector killed("node-3", 1), next("node-3", 2);
  ASSERT_NE(ShardOf("node-3", 3), 0u);
  Commit(BatchOf(killed, 10));
  Commit(Closing(BatchOf(next, 1), killed, 15));
  options_.shards = 3;
  Reopen();
  const Totals totals = TotalsOf(*store_->OpenReader(ShardOf("node-3", 3)).value());
  EXPECT_EQ(totals.captured, 16u);
  EXPECT_EQ(totals.stored, 11u);
  EXPECT_EQ(totals.lost, 5u);
}

// As the tests above, with samples of two types.
TEST_P(ClosedSessionConformance, AccountingHoldsForEachType) {
  constexpr auto kMine = static_cast<SampleType>(9);
  const SampleTypeInfo mine{"alloc_space", "bytes"};
  TestCollector first("node", 1), second("node", 2);
  auto typed = [](RowBatch batch) {
    for (size_t i = 0; i < batch.samples.size(); i += 2) batch.samples[i].type = kMine;
    batch.sample_types = {{kMine, {"alloc_space", "bytes"}}};
    return batch;
  };
  RowBatch batch = typed(BatchOf(first, 10));
  batch.accounting.captured = 10;
  ASSERT_TRUE(batch.accounting.captured.Split(kMine, 5));
  batch.accounting.captured.Add(kMine, 3);
  batch.accounting.LostFor(LossReason::kRingFull).Add(kMine, 2);
  Commit(batch);
  NodeStatus status = Status();
  EXPECT_EQ(status.accounting.captured.Of(mine), 8u);
  EXPECT_EQ(status.stored.Of(mine), 5u);
  EXPECT_EQ(status.stored.cpu(), 5u);
  EXPECT_EQ(status.accounting.LostFor(LossReason::kRingFull).Of(mine), 2u);

  // The collector was killed after it had captured 4 more samples of one type and 1 of the other. The closing batch
  // defines the meaning of the type numbers.
  RowBatch closing = typed(BatchOf(second, 2));
  closing.accounting.captured = 2;
  ASSERT_TRUE(closing.accounting.captured.Split(kMine, 1));
  SampleCounts captured = 6;
  captured.Add(kMine, 12);
  closing.closes.push_back({first.info().session_id, captured, LossReason::kCollectorKilled});
  Commit(closing);
  Reopen();
  status = Status();
  const NamedSampleCounts& killed = status.accounting.LostFor(LossReason::kCollectorKilled);
  EXPECT_EQ(killed.Of(mine), 5u) << "12 captured - 5 stored - 2 lost";
  EXPECT_EQ(killed.cpu(), 1u);
  EXPECT_EQ(status.accounting.captured, status.stored + status.accounting.TotalLost());
}

// The first type keeps its name. The 65th type and all later ones count as one.
TEST_P(ClosedSessionConformance, ASourceHasBoundedTypes) {
  constexpr auto kMine = static_cast<SampleType>(9);
  TestCollector collector("node", 1);
  constexpr int kTypes = 80;
  for (int i = 0; i < kTypes; ++i) {
    RowBatch batch = BatchOf(collector, 1);
    batch.samples[0].type = kMine;
    batch.sample_types = {{kMine, {"type" + std::to_string(i), "things"}}};
    Commit(batch);
  }
  Reopen();
  const NamedSampleCounts stored = Status().stored;
  EXPECT_EQ(stored.total(), 0u + kTypes);
  EXPECT_EQ(stored.parts().size(), kSampleTypesMax + 1);
  EXPECT_EQ(stored.Of({"type0", "things"}), 1u);
  EXPECT_EQ(stored.Of({"unknown", "unknown"}), kTypes - kSampleTypesMax);
}

// The accounting holds for each type, even for types beyond the limit of a session.
TEST_P(ClosedSessionConformance, AccountingHoldsForTypesBeyondTheCap) {
  constexpr auto kMine = static_cast<SampleType>(9), kOther = static_cast<SampleType>(10);
  TestCollector collector("node", 1);
  for (uint64_t i = 1; i <= kSampleTypesMax + 2; ++i) {
    RowBatch batch = BatchOf(collector, 1);
    batch.samples[0].type = kMine;
    batch.sample_types = {{kMine, {"type" + std::to_string(i), "things"}},
                          {kOther, {"type" + std::to_string(i - 1), "things"}}};
    batch.accounting.captured = i;
    ASSERT_TRUE(batch.accounting.captured.Split(kMine, 1));
    ASSERT_TRUE(i == 1 || batch.accounting.captured.Split(kOther, 1));
    Commit(batch);
  }
  const NodeStatus status = Status();
  EXPECT_EQ(status.accounting.captured.Of(kUndefinedType), 2u) << "the last two types are above the limit";
  EXPECT_EQ(status.stored.Of(kUndefinedType), 2u);
  EXPECT_EQ(status.stored.parts().size(), kSampleTypesMax + 1);
}

// A node closes one session with changing type names, and with counts that exceed every total.
TEST_P(ClosedSessionConformance, HostileClosingsAreBounded) {
  constexpr auto kMine = static_cast<SampleType>(9);
  TestCollector killed("node", 1), hostile("node", 2);
  for (int i = 0; i < 3 * static_cast<int>(kSampleTypesMax); ++i) {
    RowBatch batch = BatchOf(hostile, 1);
    batch.sample_types = {{kMine, {"type" + std::to_string(i), "things"}}};
    SampleCounts captured = UINT64_MAX;
    ASSERT_TRUE(captured.Split(kMine, i % 2 == 0 ? kSampleCountMax - 1 : 1));
    batch.closes.push_back({killed.info().session_id, captured, LossReason::kCollectorKilled});
    Commit(batch);
  }
  Reopen();
  const NodeStatus status = Status();
  EXPECT_LE(status.accounting.captured.parts().size(), kSampleTypesMax + 1);
  EXPECT_LE(status.accounting.captured.total(), kSampleCountMax);
  TestCollector next("node", 3);
  Commit(Closing(BatchOf(next, 1), killed, 1));
}

}  // namespace
}  // namespace tributary::store
