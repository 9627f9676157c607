#include "reducer/sqlite/day_tries.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "reducer/sqlite/schema.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

constexpr uint32_t kFull = 100;  // nodes of a full trie, with the root
constexpr int64_t kMachine = 1;

class DayTriesTest : public testing::Test {
 protected:
  DayTriesTest()
      : clock_(MonotonicNs{kNsPerDay}, UnixNs{1'700'000'000 * kNsPerSecond}),
        database_(OpenShardForWriting(directory_.path() + "/shard.db").value()),
        ledger_(NodeLedger::Prepare(database_, 1u << 30).value()),
        tries_(
            DayTries::Prepare(database_, *ledger_, {.nodes_max = kFull, .machine_nodes_min = kFull}, clock_, metrics_)
                .value()) {}

  // Adds nodes to a day's trie until it has `nodes`. Returns the number that it had.
  size_t Grow(int32_t day, uint32_t nodes) {
    const absl::StatusOr<DayTrie*> trie = tries_->Find(Day{day});
    EXPECT_TRUE(trie.ok()) << trie.status();
    const size_t before = (*trie)->node_count();
    while ((*trie)->node_count() < nodes) {
      FrameRow row;
      row.address = (*trie)->node_count();
      EXPECT_NE((*trie)->InternNode(0, (*trie)->InternFrame(row, kMachine), kMachine), 0u);
    }
    return before;
  }
  void Commit(Transaction transaction) {
    ASSERT_TRUE(tries_->Write().ok());
    ASSERT_TRUE(transaction.Commit().ok());
    tries_->MarkCommitted();
    ledger_->Rollback();
  }
  Transaction Begin() { return Transaction::Begin(database_).value(); }
  void CommitGrown(int32_t day, uint32_t nodes) {
    Transaction transaction = Begin();
    Grow(day, nodes);
    Commit(std::move(transaction));
  }
  uint64_t Loads() { return metrics_.AddCounter("tributary_reducer_trie_loads_total", "").value(); }

  TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  Database database_;
  std::unique_ptr<NodeLedger> ledger_;
  std::unique_ptr<DayTries> tries_;
};

// Today, yesterday and the two earlier days whose samples may arrive at the same time.
TEST_F(DayTriesTest, KeepsTheFullTriesOfAllDaysThatAreInUse) {
  for (int commit = 0; commit < 20; ++commit) {
    for (const int32_t day : {1, 2, 3, 4}) CommitGrown(day, kFull);
  }
  EXPECT_EQ(Loads(), 4u);
  EXPECT_EQ(tries_->nodes(), 4 * kFull);
}

TEST_F(DayTriesTest, KeepsManySmallTries) {
  for (int commit = 0; commit < 20; ++commit) {
    for (int32_t day = 0; day < 20; ++day) CommitGrown(day, 6);
  }
  EXPECT_EQ(Loads(), 20u);
  EXPECT_EQ(tries_->nodes(), 120u);
}

TEST_F(DayTriesTest, RemovesTheTriesThatWereNotUsedForLongest) {
  for (int32_t day = 0; day < 12; ++day) CommitGrown(day, 10);
  EXPECT_EQ(tries_->size(), 12u);
  CommitGrown(0, 10);
  CommitGrown(12, 10);
  EXPECT_EQ(tries_->size(), 12u) << "together they may have 125 nodes";
  EXPECT_EQ(Loads(), 13u);
  CommitGrown(0, 10);
  EXPECT_EQ(Loads(), 13u) << "it was used";
  CommitGrown(1, 10);
  EXPECT_EQ(Loads(), 14u);
}

TEST_F(DayTriesTest, RemovesATrieThatWasNotUsedForAnHour) {
  CommitGrown(1, 10);
  clock_.Advance(59 * kNsPerMinute);
  CommitGrown(2, 10);
  EXPECT_EQ(tries_->size(), 2u);
  clock_.Advance(kNsPerMinute);
  CommitGrown(2, 10);
  EXPECT_EQ(tries_->size(), 1u);
  EXPECT_EQ(Grow(1, 0), 10u) << "it is in the file";
}

// Samples of one transaction may be of any number of days.
TEST_F(DayTriesTest, BoundsTheMemoryWithinATransaction) {
  Transaction transaction = Begin();
  for (int32_t day = 0; day < 30; ++day) {
    Grow(day, kFull);
    EXPECT_LE(tries_->nodes(), DayTries::kAlwaysKept * kFull);
  }
  EXPECT_EQ(Grow(0, kFull), kFull) << "a trie that was removed has the nodes of the transaction";
  Commit(std::move(transaction));
  for (int32_t day = 0; day < 30; ++day) EXPECT_EQ(Grow(day, kFull), kFull) << day;
}

TEST_F(DayTriesTest, ARollbackReachesTriesThatWereRemovedAndLoadedAgain) {
  CommitGrown(0, 10);
  {
    const Transaction rolled_back = Begin();
    for (int32_t day = 0; day < 10; ++day) Grow(day, kFull);
    EXPECT_EQ(Grow(0, kFull), kFull);
  }
  tries_->Rollback();
  ledger_->Rollback();
  EXPECT_EQ(Grow(0, 0), 10u);
  for (int32_t day = 1; day < 10; ++day) EXPECT_EQ(Grow(day, 0), 1u) << day;
}

TEST_F(DayTriesTest, CountsOfMachinesSurviveTheRemovalOfATrie) {
  CommitGrown(0, 50);
  clock_.Advance(60 * kNsPerMinute);
  CommitGrown(1, 10);
  ASSERT_EQ(tries_->size(), 1u);
  EXPECT_EQ(tries_->Find(Day{0}).value()->shares().Added(kMachine), 49u);
}

}  // namespace
}  // namespace tributary::store
