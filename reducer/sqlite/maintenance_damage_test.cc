#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "reducer/sqlite/maintenance_tasks.h"
#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kMinutes = 24;
constexpr int64_t kPageBytes = 8192;

// Maintenance of a shard's file with a page that SQLite itself cannot read.
class MaintenanceDamageTest : public SqliteStoreTest {
 protected:
  MaintenanceDamageTest() {
    options_.raw_age_ns = kNsPerDay / 2;
    options_.sum_age_ns = options_.event_age_ns = kNsPerDay;
    Reopen();
    for (int minute = 0; minute < kMinutes; ++minute) CommitMinute(minute);
  }
  // Commits a chunk of samples that fills most of a page, and an event.
  void CommitMinute(int minute) {
    const int64_t at_s = 60 * (minute - kMinutes);
    for (uint64_t i = 0; i < 400; ++i) {
      collector_.Add(At(at_s), collector_.Thread(1, "t"), collector_.Stack({1, i % 10}), random_() >> 8);
    }
    collector_.Add(At(at_s), collector_.Event(ProcessEventKind::kExec, 7 + minute, "gcc"));
    CommitOne(collector_.Take(At(at_s)));
  }
  Database& database() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }
  int64_t Query(const std::string& sql) { return database().QueryInt(sql).value(); }
  std::string QueryBytes(const std::string& sql) {
    Statement statement = database().Prepare(sql).value();
    EXPECT_TRUE(statement.Step().value());
    return std::string(statement.Bytes(0));
  }
  int64_t PageOf(const std::string& bytes) {
    std::ifstream in(path_, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const size_t at = file.rfind(bytes);  // earlier pages may contain old copies
    EXPECT_NE(at, std::string::npos);
    return static_cast<int64_t>(at) / kPageBytes + 1;
  }
  // Overwrites a page. The file must be closed.
  void Damage(int64_t page) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp((page - 1) * kPageBytes);
    file << std::string(kPageBytes, '\x5a');
  }
  void Close() {
    writer_.reset();
    store_.reset();
  }
  void DamageRow(int64_t chunk) {
    const std::string columns = QueryBytes(fmt::format("SELECT columns FROM sample_chunk WHERE id = {}", chunk));
    Close();
    Damage(PageOf(columns.substr(columns.size() / 2, 64)));
    Reopen();
    collector_.StartGeneration();
  }
  // Runs maintenance until no work is left. Returns the last status.
  absl::Status Maintain(int64_t at_s) {
    absl::Status status;
    for (int i = 0; i < 40; ++i) status = writer_->Maintain(At(at_s));
    return status;
  }
  uint64_t Failures(MaintenanceTask task) {
    return metrics_
        .AddCounter("tributary_reducer_maintenance_failures_total", "", {{"task", std::string(NameOf(task))}})
        .value();
  }

  const std::string path_ = directory_.path() + "/shard-0.db";
  TestCollector collector_{"node-a"};
  std::mt19937_64 random_{7};
};

TEST_F(MaintenanceDamageTest, MinutesAfterADamagedOneAreClosed) {
  DamageRow(5);
  EXPECT_TRUE(Maintain(600).ok()) << "the unreadable row was reported";
  EXPECT_GE(Query("SELECT value FROM watermark WHERE name = 'closed_before'"), MinuteOf(At(0)));
  EXPECT_GE(Query("SELECT count(*) FROM minute_sum"), kMinutes - 3);
  EXPECT_LT(Query("SELECT count(*) FROM minute_sum"), kMinutes);
  CommitMinute(kMinutes);
}

// The node is over its share, and a row of its oldest day cannot be read.
TEST_F(MaintenanceDamageTest, ADamagedPageDoesNotStopExpiryBySize) {
  options_.bytes_max = 64 << 10;
  DamageRow(5);
  EXPECT_FALSE(Maintain(600).ok());
  clock_.Advance(5 * kNsPerMinute);  // a task that met damage pauses
  EXPECT_TRUE(Maintain(900).ok());
  EXPECT_LE(Query("SELECT count(*) FROM sample_chunk INDEXED BY sample_chunk_minute"), 12);
  EXPECT_GT(Failures(MaintenanceTask::kExpireBySize), 0u);
}

// What is left of the node's day will not go when its last minutes are closed.
TEST_F(MaintenanceDamageTest, ExpiryBySizeDoesNotWaitForADayWithADamagedPage) {
  constexpr int kMore = 200;
  for (int minute = kMinutes; minute < kMinutes + kMore; ++minute) CommitMinute(minute);
  const int64_t end_s = 60 * kMore;
  TestCollector small("node-b", 2);
  small.Add(At(end_s), small.Thread(1, "t"), small.Stack({1, 2}));
  CommitOne(small.Take(At(end_s)));
  ASSERT_TRUE(Maintain(end_s + 600).ok());
  options_.bytes_max = 1 << 20;
  DamageRow(100);
  const int64_t sums = Query("SELECT count(*) FROM minute_sum");
  for (int64_t at_s = end_s + 600; at_s < end_s + 1'200; at_s += 60) {
    Maintain(at_s).IgnoreError();
    clock_.Advance(kNsPerMinute);
  }
  EXPECT_LT(Query("SELECT count(*) FROM minute_sum"), sums);
}

TEST_F(MaintenanceDamageTest, ADamagedIndexDoesNotStopExpiryBySizeOfTheOtherTables) {
  ASSERT_TRUE(Maintain(600).ok());
  const int64_t page = Query("SELECT rootpage FROM sqlite_schema WHERE name = 'event_chunk_slot'");
  options_.bytes_max = 64 << 10;
  Close();
  Damage(page);
  Reopen();
  EXPECT_FALSE(Maintain(900).ok());
  clock_.Advance(kNsPerMinute);
  EXPECT_FALSE(Maintain(1'200).ok());
  EXPECT_LE(Query("SELECT count(*) FROM sample_chunk"), 1);
}

// The last page is read before the first new text is stored.
TEST_F(MaintenanceDamageTest, AShardWithADamagedPageOfTextsOpens) {
  const int64_t page = Query("SELECT rootpage FROM sqlite_schema WHERE name = 'string'");
  Close();
  Damage(page);
  Reopen();
  ASSERT_NE(writer_, nullptr);
  TestCollector collector("node-b", 2);
  collector.Add(At(1), collector.Thread(1, "new"), collector.Stack({1, 2}));
  const RowBatch batch = collector.Take(At(1));
  EXPECT_FALSE(writer_->Commit({&batch, 1}).ok());
}

// The trie of the first day stays. It must not keep the texts of all later days.
TEST_F(MaintenanceDamageTest, ATrieThatCannotBeDeletedKeepsNoLaterTexts) {
  const auto commit_day = [&](int day) {
    clock_.Advance(kNsPerDay);
    TestCollector collector("node-b", static_cast<uint8_t>(10 + day));
    std::vector<uint64_t> stack;
    for (int i = 0; i < 400; ++i) stack.push_back(random_());  // fills half a page
    collector.Add(clock_.Unix(), collector.Thread(1, fmt::format("of day {}", day)), collector.Stack(stack));
    CommitOne(collector.Take(clock_.Unix()));
  };
  commit_day(1);
  const std::string piece = QueryBytes("SELECT columns FROM trie_chunk ORDER BY id DESC LIMIT 1");
  commit_day(2);
  Close();
  Damage(PageOf(piece.substr(piece.size() / 2, 64)));
  Reopen();
  commit_day(3);
  clock_.Advance(20 * kNsPerMinute);
  for (int day = 3; day < 6; ++day) {
    for (int i = 0; i < 50; ++i) {
      clock_.Advance(2 * kNsPerMinute);
      writer_->Maintain(clock_.Unix()).IgnoreError();
    }
    clock_.Advance(kNsPerDay);
  }
  EXPECT_GT(Query("SELECT count(*) FROM trie_chunk"), 0) << "the damaged one";
  EXPECT_EQ(Query("SELECT count(*) FROM string WHERE text IN (CAST('of day 2' AS BLOB), CAST('of day 3' AS BLOB))"), 0);
}

TEST_F(MaintenanceDamageTest, ARowThatCannotBeDeletedDoesNotStopExpiry) {
  DamageRow(5);
  ASSERT_TRUE(Maintain(600).ok());
  EXPECT_TRUE(Maintain(86'400).ok());
  const int64_t left = Query("SELECT count(*) FROM sample_chunk INDEXED BY sample_chunk_minute");
  EXPECT_GE(left, 1);
  EXPECT_LE(left, 8) << "also rows of neighbouring pages";
  // Further days come and go.
  for (int day = 1; day < 5; ++day) {
    clock_.Advance(kNsPerDay);
    for (int minute = 0; minute < 3; ++minute) CommitMinute(1440 * day + minute);
    EXPECT_TRUE(Maintain(86'400 * (day + 1)).ok());
  }
  EXPECT_LE(Query("SELECT count(*) FROM sample_chunk INDEXED BY sample_chunk_minute"), left + 3);
  EXPECT_LE(Query("SELECT count(DISTINCT day) FROM trie_chunk"), 2);
  EXPECT_LE(Query("SELECT count(DISTINCT minute) FROM minute_sum"), 6);
}

// Before, the first task that failed ended each run of maintenance.
TEST_F(MaintenanceDamageTest, ATaskThatFailsDoesNotStopTheOthers) {
  const int64_t page = Query("SELECT rootpage FROM sqlite_schema WHERE name = 'event_chunk_slot'");
  Close();
  Damage(page);
  Reopen();
  collector_.StartGeneration();
  EXPECT_THAT(store_->ListDamage(), IsEmpty());
  const absl::Status status = writer_->Maintain(At(3 * 86'400));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(Failures(MaintenanceTask::kExpireEvents), 1u);
  EXPECT_EQ(Failures(MaintenanceTask::kMergeEvents), 1u) << "in the same run";
  EXPECT_TRUE(absl::IsDataLoss(Maintain(3 * 86'400 + 1))) << "the damage is still there";
  EXPECT_EQ(Failures(MaintenanceTask::kExpireEvents), 1u) << "a failed task waits for a minute";
  EXPECT_TRUE(absl::IsDataLoss(Maintain(3 * 86'400 + 60)));
  EXPECT_EQ(Failures(MaintenanceTask::kExpireEvents), 2u);
  EXPECT_EQ(Failures(MaintenanceTask::kExpireSums), 0u);
  EXPECT_EQ(Query("SELECT count(*) FROM sample_chunk"), 0);
  EXPECT_EQ(Query("SELECT count(*) FROM minute_sum"), 0);
  EXPECT_EQ(Query("SELECT count(*) FROM trie_chunk"), 0);
  const std::vector<DamageEntry> damage = store_->ListDamage();
  EXPECT_THAT(damage, Contains(Field(&DamageEntry::kind, "maintenance: expire_events")));
  EXPECT_THAT(damage, Not(Contains(Field(&DamageEntry::kind, "maintenance: expire_sums"))));
  EXPECT_THAT(damage.at(0).reason, HasSubstr("shard-0.db"));

  // The intake goes on.
  clock_.Advance(3 * kNsPerDay);
  TestCollector collector("node-b", 2);
  collector.Add(At(3 * 86'400), collector.Thread(1, "t"), collector.Stack({1, 2}));
  CommitOne(collector.Take(At(3 * 86'400)));
  EXPECT_EQ(Query("SELECT count(*) FROM sample_chunk"), 1);
}

TEST(TaskFailures, ListsATaskUntilItWorksAgain) {
  DamageReports damage;
  FakeClock clock(MonotonicNs{1}, UnixNs{1});
  Metrics metrics;
  TaskFailures failures("shard-0.db", damage, clock, metrics);
  const auto listed = [&] {
    std::vector<DamageEntry> entries;
    damage.AppendListed(7, &entries);
    return entries;
  };
  failures.Note(MaintenanceTask::kReturnPages, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(listed(), IsEmpty()) << "not damage";
  failures.Note(MaintenanceTask::kReturnPages, absl::DataLossError("first"));
  failures.Note(MaintenanceTask::kReturnPages, absl::DataLossError("second"));
  ASSERT_EQ(listed().size(), 1u);
  EXPECT_EQ(listed()[0].shard, 7u);
  EXPECT_EQ(listed()[0].kind, "maintenance: return_pages");
  EXPECT_EQ(listed()[0].count, 2u);
  EXPECT_EQ(listed()[0].reason, "first");
  failures.Note(MaintenanceTask::kReturnPages, absl::OkStatus());
  EXPECT_THAT(listed(), IsEmpty());
}

}  // namespace
}  // namespace tributary::store
