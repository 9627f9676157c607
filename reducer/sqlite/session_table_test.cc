#include "reducer/sqlite/session_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "base/directory_testing.h"
#include "base/types.h"
#include "reducer/sqlite/schema.h"

namespace tributary::store {
namespace {

class SessionTableTest : public testing::Test {
 protected:
  SessionTableTest() {
    absl::StatusOr<Database> opened = OpenShardForWriting(directory_.path() + "/shard-0.db");
    EXPECT_TRUE(opened.ok()) << opened.status();
    database_.emplace(*std::move(opened));
    ledger_ = NodeLedger::Prepare(*database_, 1u << 30).value();
    absl::StatusOr<SessionTable> table = SessionTable::Prepare(
        *database_, *ledger_, {.sessions_max = 100, .memory_bytes_max = 1u << 20, .refusals = &refusals_}, metrics_);
    EXPECT_TRUE(table.ok()) << table.status();
    table_.emplace(*std::move(table));
  }
  static std::string Id(int number) { return std::string(16, static_cast<char>('a' + number)); }
  // Commits a dictionary with a text of this size, at `second`.
  void Commit(int number, size_t bytes, int64_t second) {
    absl::StatusOr<Transaction> transaction = Transaction::Begin(*database_);
    ASSERT_TRUE(transaction.ok());
    absl::StatusOr<Session*> session = table_->Touch(Id(number));
    ASSERT_TRUE(session.ok());
    (*session)->machine = 1;
    (*session)->node_id = "node" + std::to_string(number);
    table_->StartGeneration(**session, 1);
    Definitions definitions;
    for (; bytes > 0; bytes -= std::min<size_t>(bytes, 4'000)) {
      definitions.strings.emplace_back(std::min<size_t>(bytes, 4'000), 'x');
    }
    EXPECT_TRUE((*session)->dictionary->Append(definitions));
    EXPECT_TRUE(table_->WriteTouched(second * kNsPerSecond).ok());
    EXPECT_TRUE(transaction->Commit().ok());
    table_->Settle();
  }
  bool HasDictionary(int number) {
    absl::StatusOr<Session*> session = table_->Touch(Id(number));
    const bool has = session.ok() && (*session)->dictionary != nullptr;
    table_->Undo();
    return has;
  }
  uint64_t Evictions(const char* was) {
    return metrics_.AddCounter("tributary_reducer_session_evictions_total", "", {{"was", was}}).value();
  }
  int64_t StringBytes() {
    return metrics_.AddGauge("tributary_reducer_session_memory_bytes", "", {{"kind", "strings"}}).value();
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  Refusals refusals_{clock_, metrics_};
  std::optional<Database> database_;
  std::unique_ptr<NodeLedger> ledger_;
  std::optional<SessionTable> table_;
};

TEST_F(SessionTableTest, EvictsTheLargestIdleSessionAndNotTheOldest) {
  Commit(0, 10'000, 1'000);
  Commit(1, 400'000, 1'001);
  Commit(2, 20'000, 1'002);
  Commit(3, 500'000, 1'080);
  EXPECT_EQ(Evictions("idle"), 0u);
  Commit(4, 300'000, 1'081);
  EXPECT_EQ(Evictions("idle"), 1u);
  EXPECT_FALSE(HasDictionary(1));
  ASSERT_EQ(refusals_.List().size(), 1u);
  EXPECT_EQ(refusals_.List()[0].node, "node1");
  for (int number : {0, 2, 3, 4}) EXPECT_TRUE(HasDictionary(number)) << number;
  EXPECT_LT(StringBytes(), 1 << 20);
}

TEST_F(SessionTableTest, EvictsTheLargestActiveSessionIfNoneIsIdle) {
  Commit(0, 10'000, 1'000);
  Commit(1, 900'000, 1'001);
  Commit(2, 200'000, 1'002);
  EXPECT_EQ(Evictions("active"), 1u);
  EXPECT_TRUE(HasDictionary(0));
  EXPECT_FALSE(HasDictionary(1));
  EXPECT_TRUE(HasDictionary(2));
}

TEST_F(SessionTableTest, ASessionAboveTheLimitGoesOn) {
  Commit(0, 2'000'000, 1'000);
  EXPECT_TRUE(HasDictionary(0));
  EXPECT_GE(StringBytes(), 2'000'000);
  Commit(1, 10, 1'001);
  EXPECT_FALSE(HasDictionary(0)) << "it is not in use";
  EXPECT_LT(StringBytes(), 10'000);
}

// A vector keeps its capacity when its elements are removed.
TEST_F(SessionTableTest, CountsWhatIsAllocated) {
  SessionDictionary dictionary(1);
  Definitions definitions;
  definitions.nodes.resize(10'000);
  ASSERT_TRUE(dictionary.Append(definitions));
  const size_t full = dictionary.table_bytes();
  EXPECT_GE(full, 10'000 * sizeof(Node));
  dictionary.Truncate(
      DictionaryCounts{.strings = 1, .executables = 1, .frames = 1, .nodes = 1, .processes = 1, .threads = 1});
  EXPECT_EQ(dictionary.table_bytes(), full);
}

}  // namespace
}  // namespace tributary::store
