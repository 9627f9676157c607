#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

// What sessions that cannot speak any more have lost.

namespace tributary::store {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};

class ClosedSessionTest : public testing::Test {
 protected:
  ClosedSessionTest() { Open(); }

  void Open() {
    writer_.reset();
    store_.reset();
    store_ = SqliteStore::Open(directory_.path(), options_, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
  }
  // A batch of that many samples, and what the collector knows to be on its way when it is closed.
  static RowBatch BatchOf(TestCollector& collector, int samples, uint64_t on_the_way = 0) {
    for (int i = 0; i < samples; ++i) collector.Add(kNow, collector.Thread(1, "t"), collector.Stack({1}));
    RowBatch batch = collector.Take(kNow);
    batch.accounting.captured += on_the_way;
    return batch;
  }
  void Commit(RowBatch batch) {
    auto outcomes = writer_->Commit({&batch, 1});
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    ASSERT_FALSE(outcomes->back().need_dictionary);
  }
  static RowBatch Closing(RowBatch batch, const TestCollector& ended, uint64_t captured,
                          LossReason reason = LossReason::kCollectorKilled) {
    batch.closes.push_back({ended.info().session_id, captured, reason});
    return batch;
  }
  NodeStatus Status() {
    auto nodes = store_->OpenReader(0).value()->Nodes().value();
    NodeStatus all;
    for (const NodeStatus& node : nodes) {
      all.accounting += node.accounting;
      all.stored += node.stored;
    }
    return all;
  }
  uint64_t Lost(LossReason reason) { return Status().accounting.lost[static_cast<size_t>(reason)]; }
  void ExpectExact(uint64_t captured) {
    const NodeStatus status = Status();
    EXPECT_EQ(status.accounting.captured, captured);
    EXPECT_EQ(status.accounting.captured, status.stored + status.accounting.TotalLost());
  }
  uint64_t Refused() {
    return static_cast<uint64_t>(
        writer_ == nullptr ? 0 : metrics_.AddCounter("tributary_reducer_closings_refused_total", "").value());
  }

  TestDirectory directory_;
  FakeClock clock_{MonotonicNs{kNsPerSecond}, kNow};
  Metrics metrics_;
  StoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
};

TEST_F(ClosedSessionTest, WhatIsMissingIsLostOnce) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  killed.Lose(LossReason::kRingFull, 3);
  Commit(BatchOf(killed, 10, 4));
  EXPECT_EQ(Status().accounting.captured - Status().stored - Status().accounting.TotalLost(), 4u) << "on the way";
  Commit(Closing(BatchOf(next, 5), killed, 20));
  ExpectExact(25);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 7u);
  EXPECT_EQ(Lost(LossReason::kRingFull), 3u);
  // Told again, in a batch of its own, with less, after a restart: nothing changes.
  Commit(Closing(BatchOf(next, 0), killed, 20));
  Commit(Closing(BatchOf(next, 0), killed, 2));
  ExpectExact(25);
  Open();
  ExpectExact(25);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 7u);
}

TEST_F(ClosedSessionTest, WhatWasOnTheWayAndCameInAnotherSessionIsNotLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10, 4));  // the four went to the spool, and come with the next session
  Commit(Closing(BatchOf(next, 4), killed, 10));
  ExpectExact(14);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
}

TEST_F(ClosedSessionTest, AStopHasItsOwnReason) {
  TestCollector stopped("node-a", 1), next("node-a", 2);
  Commit(BatchOf(stopped, 10));
  Commit(Closing(BatchOf(next, 1), stopped, 15, LossReason::kShutdown));
  EXPECT_EQ(Lost(LossReason::kShutdown), 5u);
  ExpectExact(16);
}

TEST_F(ClosedSessionTest, ABatchStoredWhoseAckWasNeverSeenIsNotLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10));
  Commit(BatchOf(killed, 7));
  Commit(Closing(BatchOf(next, 1), killed, 17));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
  ExpectExact(18);
}

TEST_F(ClosedSessionTest, WhatComesAllTheSameFromASpoolIsNotLost) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10));
  RowBatch spooled = BatchOf(killed, 6);
  Commit(Closing(BatchOf(next, 1), killed, 20));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 10u);
  Commit(spooled);
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 4u);
  ExpectExact(21);
}

TEST_F(ClosedSessionTest, ASessionNeverSeenIsLostAsAWhole) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(Closing(BatchOf(next, 1), killed, 12));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 12u);
  ExpectExact(13);
  // Not for retention to remove at once.
  ASSERT_TRUE(writer_->Maintain(kNow).ok());
  ExpectExact(13);
  // What it had sent arrives after all.
  Commit(BatchOf(killed, 5));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 7u);
  ExpectExact(13);
}

TEST_F(ClosedSessionTest, OneAnswersForAllThatDiedUntold) {
  TestCollector first("node-a", 1), second("node-a", 2), elsewhere("node-a", 9), next("node-a", 3);
  Commit(BatchOf(first, 10, /*on_the_way=*/5));
  Commit(BatchOf(first, 7, /*on_the_way=*/3));  // its node has not seen it acknowledged
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
  // The one that told was killed too, before it knew that it had been heard.
  TestCollector last("node-a", 4);
  RowBatch again = Closing(BatchOf(last, 1), next, 36 + 8);
  again = Closing(std::move(again), second, 4);
  again = Closing(std::move(again), first, 10);
  Commit(Closing(std::move(again), elsewhere, 2));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 36u - 17 - 4 - 2 + 8 - 2);
  ExpectExact(36 - 2 + 8 + 1);
}

TEST_F(ClosedSessionTest, WhatWasOnItsWayMayHaveGoneToAnotherSession) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10, /*on_the_way=*/50));
  Commit(Closing(BatchOf(next, 40), killed, 20));  // 40 of the 50 were in the spool
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 10u);
  ExpectExact(20 + 40);
}

TEST_F(ClosedSessionTest, OneGroupMayHoldBothSessions) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  std::vector<RowBatch> group;
  group.push_back(BatchOf(killed, 10));
  group.push_back(Closing(BatchOf(next, 1), killed, 12));
  ASSERT_TRUE(writer_->Commit(group).ok());
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 2u);
  ExpectExact(13);
}

TEST_F(ClosedSessionTest, OnlyTheSameNodeMayCloseASession) {
  TestCollector victim("node-a", 1), other("node-b", 2);
  Commit(BatchOf(victim, 10));
  Commit(Closing(BatchOf(other, 1), victim, 1'000'000));
  Commit(Closing(BatchOf(other, 1), other, 1'000'000));
  ExpectExact(12);
  EXPECT_EQ(Refused(), 2u);
}

TEST_F(ClosedSessionTest, ANodeCannotFillTheTableWithIds) {
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

TEST_F(ClosedSessionTest, AFailedCommitClosesNothing) {
  TestCollector killed("node-a", 1), next("node-a", 2);
  Commit(BatchOf(killed, 10, 5));
  {
    Database other = OpenShardForWriting(store_->ShardPath(0)).value();
    ASSERT_TRUE(
        other.Execute("CREATE TRIGGER fail BEFORE INSERT ON sample_chunk BEGIN SELECT RAISE(ABORT, 'no'); END").ok());
  }
  RowBatch batch = Closing(BatchOf(next, 1), killed, 15);
  std::vector<RowBatch> group = {Closing(BatchOf(next, 0), killed, 15), batch};
  EXPECT_FALSE(writer_->Commit(group).ok());
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
  {
    Database other = OpenShardForWriting(store_->ShardPath(0)).value();
    ASSERT_TRUE(other.Execute("DROP TRIGGER fail").ok());
  }
  TestCollector again("node-a", 3);
  Commit(BatchOf(again, 1));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 0u);
}

// A batch closed two days after its machine's boot, or ten.
RowBatch OfBoot(RowBatch batch, std::string boot_id, int64_t up_ns) {
  auto info = std::make_shared<NodeInfo>(*batch.node);
  info->boot_id = std::move(boot_id);
  batch.node = info;
  const int64_t shift = up_ns - batch.clock.monotonic.value;
  batch.clock.monotonic.value += shift;
  for (Sample& sample : batch.samples) sample.time.value += shift;
  return batch;
}

TEST_F(ClosedSessionTest, SessionsOfAnEarlierBootCannotSpeakAgain) {
  TestCollector before("node-a", 1), also_before("node-a", 2), other("node-b", 3), after("node-a", 4);
  Commit(OfBoot(BatchOf(before, 10, 3), "boot-1", 10 * kNsPerDay));
  Commit(OfBoot(BatchOf(other, 10, 3), "boot-9", 10 * kNsPerDay));
  // One that the writer has in memory from the same group, one that it must look for in the file.
  Open();
  std::vector<RowBatch> group;
  group.push_back(OfBoot(BatchOf(also_before, 10, 2), "boot-1", 10 * kNsPerDay));
  group.push_back(OfBoot(BatchOf(after, 1), "boot-2", 2 * kNsPerDay));
  ASSERT_TRUE(writer_->Commit(group).ok());
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 5u) << "and not those of another node";
  // Old sessions appear late, from a spool: the boot that lasts is not over.
  TestCollector late("node-a", 5);
  Commit(OfBoot(BatchOf(after, 1, 8), "boot-2", 2 * kNsPerDay));
  Commit(OfBoot(BatchOf(late, 1), "boot-1", 10 * kNsPerDay));
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 5u);
}

// The child commits batches that close a killed session, again and again, and is killed itself: whatever the number of
// times it was told, each loss counts once.
TEST_F(ClosedSessionTest, ExactAcrossKillsOfTheReducer) {
  constexpr uint8_t kSessions = 20;
  writer_.reset();
  store_.reset();
  for (uint32_t round = 0; round < 12; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Open();
      for (uint8_t id = 1; id <= kSessions; ++id) {
        TestCollector collector("node-a", id);
        uint64_t durable = 0;
        if (auto found = writer_->FindSession(collector.info().session_id); found.ok())
          durable = found->durable_sequence;
        std::vector<RowBatch> group;
        for (int i = 0; i < 3; ++i) {
          RowBatch batch = BatchOf(collector, 10);
          TestCollector before("node-a", static_cast<uint8_t>(id - 1));
          if (i == 0 && id > 1) batch = Closing(std::move(batch), before, 35);
          if (batch.sequence <= durable) continue;
          if (group.empty()) {
            collector.StartGeneration();
            batch = collector.Resend(batch);
          }
          group.push_back(std::move(batch));
        }
        auto outcomes = writer_->Commit(group);
        if (!outcomes.ok() || (!outcomes->empty() && outcomes->back().need_dictionary)) _exit(2);
      }
      _exit(0);
    }
    if (round < 11) {
      usleep((round * 7919) % 60'000);
      kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  }
  Open();
  EXPECT_EQ(Lost(LossReason::kCollectorKilled), 5u * (kSessions - 1));
  ExpectExact(35u * (kSessions - 1) + 30);
}

TEST_F(ClosedSessionTest, ClosingMovesWithItsNode) {
  TestCollector killed("node-3", 1), next("node-3", 2);
  ASSERT_NE(ShardOf("node-3", 3), 0u);
  Commit(BatchOf(killed, 10));
  Commit(Closing(BatchOf(next, 1), killed, 15));
  options_.shards = 3;
  Open();
  const Totals totals = TotalsOf(*store_->OpenReader(ShardOf("node-3", 3)).value());
  EXPECT_EQ(totals.captured, 16u);
  EXPECT_EQ(totals.stored, 11u);
  EXPECT_EQ(totals.lost, 5u);
}

}  // namespace
}  // namespace tributary::store
