#include "reducer/sqlite/maintenance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_steps_testing.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

constexpr UnixNs kStart{1'700'000'040 * kNsPerSecond};  // a whole minute
constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

class MaintenanceTest : public ::testing::Test {
 protected:
  MaintenanceTest() : clock_(MonotonicNs{kNsPerSecond}, kStart) {}

  void Open() {
    writer_.reset();
    store_.reset();
    store_ = SqliteStore::Open(directory_.path(), options_, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
  }
  std::unique_ptr<StoreReader> Reader() { return store_->OpenReader(0).value(); }
  void Commit(const RowBatch& batch) {
    auto outcomes = writer_->Commit({&batch, 1});
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    ASSERT_FALSE(outcomes->at(0).need_dictionary);
  }
  // The default number of calls leaves no work undone.
  void Maintain(int calls = 50) {
    for (int i = 0; i < calls; ++i) {
      absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  int64_t Count(const std::string& table) {
    return static_cast<SqliteShardWriter*>(writer_.get())->database().QueryInt("SELECT count(*) FROM " + table).value();
  }
  // Counts the samples in minute sums, and in raw columns where sums are missing.
  uint64_t Summed(TimeRange range) {
    uint64_t samples = 0;
    EXPECT_TRUE(Reader()
                    ->ScanSums(range,
                               [&](const SumColumns& columns) {
                                 for (uint64_t count : columns.counts) samples += count;
                                 return absl::OkStatus();
                               })
                    .ok());
    return samples;
  }

  TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  StoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
};

TEST_F(MaintenanceTest, RemovesADayWithItsTrieAndUnusedDefinitions) {
  options_.machine_nodes_per_day_min = 64;  // so each added node is counted in the file
  options_.raw_age_ns = 12 * 60 * kNsPerMinute;
  options_.sum_age_ns = 2 * kNsPerDay;
  Open();
  TestCollector collector("node-a");
  ThreadRef old_thread = collector.Thread(1, "short-lived"), kept = collector.Thread(2, "long-lived");
  collector.Add(clock_.Unix(), old_thread, collector.Stack({1, 2}));
  collector.Add(clock_.Unix(), kept, collector.Stack({1, 3}));
  Commit(collector.Take(clock_.Unix()));
  for (int day = 0; day < 5; ++day) {
    clock_.Advance(kNsPerDay);
    Maintain(5);
    collector.Add(clock_.Unix(), kept, collector.Stack({1, 3}));
    Commit(collector.Take(clock_.Unix()));
    Maintain();
  }
  EXPECT_EQ(Count("process_chunk"), 3) << "one a day kept";
  EXPECT_EQ(Count("string WHERE text = CAST('short-lived' AS BLOB)"), 0);
  EXPECT_EQ(Count("string WHERE text = CAST('long-lived' AS BLOB)"), 1);
  EXPECT_LE(Count("trie_chunk"), 3);
  EXPECT_EQ(Count("trie_share WHERE day NOT IN (SELECT day FROM trie_chunk)"), 0);
}

TEST_F(MaintenanceTest, AddsAndRemovesRowsOfMinutesAndMachines) {
  options_.sum_age_ns = options_.event_age_ns = 2 * kNsPerDay;
  Open();
  TestCollector collector("node-a");
  for (int minute = 0; minute < 5; ++minute) {
    collector.Add(UnixNs{kStart.value + minute * kNsPerMinute}, collector.Thread(1, "a"), collector.Stack({1}));
  }
  Commit(collector.Take(clock_.Unix()));
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(Count("minute_sum"), 5);
  EXPECT_EQ(Count("machine"), 1);
  clock_.Advance(4 * kNsPerDay);
  Maintain();
  EXPECT_EQ(Count("minute_sum"), 0);
  EXPECT_EQ(Count("machine"), 0);
}

// Events keep the texts that they refer to, also after the day's trie was removed.
TEST_F(MaintenanceTest, RemovesTextsWithTheLastEventsOfADay) {
  options_.sum_age_ns = kNsPerDay;
  options_.event_age_ns = 3 * kNsPerDay;
  Open();
  TestCollector collector("node-a");
  collector.Add(clock_.Unix(), collector.Thread(1, "sampled"), collector.Stack({1}));
  collector.Add(clock_.Unix(), collector.Event(ProcessEventKind::kStart, 7, "started"));
  Commit(collector.Take(clock_.Unix()));
  clock_.Advance(2 * kNsPerDay + kNsPerDay / 2);
  Maintain();
  EXPECT_EQ(Count("trie_chunk"), 0);
  EXPECT_EQ(Count("process_chunk"), 0);
  EXPECT_EQ(Count("event_chunk"), 1);
  EXPECT_EQ(Count("string WHERE text = CAST('started' AS BLOB)"), 1);
  EXPECT_EQ(Count("machine"), 1);
  clock_.Advance(kNsPerDay);
  Maintain();
  EXPECT_EQ(Count("event_chunk"), 0);
  EXPECT_EQ(Count("string"), 0);
}

// The writer must not use the id of a removed text again.
TEST_F(MaintenanceTest, ATextComesBackAfterItsRemoval) {
  options_.event_age_ns = kNsPerDay;
  Open();
  TestCollector collector("node-a");
  for (int i = 0; i < 2; ++i) {
    collector.Add(clock_.Unix(), collector.Event(ProcessEventKind::kStart, 7, "started"));
    Commit(collector.Take(clock_.Unix()));
    EXPECT_EQ(Count("string WHERE text = CAST('started' AS BLOB)"), 1);
    clock_.Advance(3 * kNsPerDay);
    Maintain();
    EXPECT_EQ(Count("string"), 0);
  }
}

// A session that still uses its definitions need not describe them again.
TEST_F(MaintenanceTest, RemovingADayKeepsTheIdsOfOtherDays) {
  options_.sum_age_ns = 2 * kNsPerDay;
  Open();
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const auto commit = [&] {
    collector.Add(clock_.Unix(), thread, collector.Stack({1, 2}));
    Commit(collector.Take(clock_.Unix()));
  };
  commit();
  clock_.Advance(2 * kNsPerDay + 2 * kNsPerMinute);
  commit();
  ASSERT_EQ(Count("process_chunk"), 2);
  Maintain();
  ASSERT_EQ(Count("trie_chunk"), 1) << "the first day was removed";
  ASSERT_EQ(Count("process_chunk"), 1);
  clock_.Advance(kNsPerSecond);
  commit();
  EXPECT_EQ(Count("process_chunk"), 1) << "the process was described in this slot already";
}

// Its samples used to open a day in each commit, and the next maintenance removed this day again.
TEST_F(MaintenanceTest, ANodeThatIsAMonthBehindCostsNothing) {
  Open();
  TestCollector right("node-a", 1), behind("node-b", 2);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(kNsPerSecond);
    const UnixNs now = clock_.Unix(), month_ago{now.value - 30 * kNsPerDay};
    right.Add(now, right.Thread(1, "a"), right.Stack({1, 2}));
    Commit(right.Take(now));
    behind.Add(month_ago, behind.Thread(2, "b"), behind.Stack({1, 3}));
    Commit(behind.Take(month_ago));
    Maintain(1);
  }
  EXPECT_EQ(Count("process_chunk"), 1);
  EXPECT_EQ(Count("trie_chunk"), 1);
  EXPECT_EQ(Count("sample_chunk"), 10);
  EXPECT_EQ(TotalsOf(*Reader()).lost, 10u);
}

// The size limit may remove a day that is still within retention. Late data of this day need new rows.
TEST_F(MaintenanceTest, ARemovedDayCanComeBack) {
  options_.bytes_max = 1;
  options_.raw_age_ns = options_.sum_age_ns;
  Open();
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "worker");
  const NodeRef stack = collector.Stack({1, 2});
  const UnixNs yesterday{kStart.value - kNsPerDay};
  for (int i = 0; i < 2; ++i) {
    collector.Add(yesterday, thread, stack);
    collector.Add(yesterday, collector.Event(ProcessEventKind::kStart, 7, "started"));
    Commit(collector.Take(yesterday));
    auto reader = Reader();
    EXPECT_EQ(reader->Processes(kAlways, nullptr).value().at(0).comm, "worker");
    EXPECT_EQ(reader->Threads(kAlways, {reader->Processes(kAlways, nullptr).value().at(0).no}).value().size(), 1u);
    EXPECT_EQ(reader->LoadTrie(DayOf(yesterday)).value().parents.size(), 3u);
    EXPECT_EQ(reader->Executables().value().back().path, "/lib/libc.so");
    EXPECT_EQ(Count("string WHERE text = CAST('started' AS BLOB)"), 1);
    reader.reset();
    Maintain();
    EXPECT_EQ(Count("trie_chunk"), 0);
    EXPECT_EQ(Count("process_chunk"), 0);
    EXPECT_EQ(Count("string"), 0);
    EXPECT_EQ(Count("executable"), 0);
  }
}

TEST_F(MaintenanceTest, RemovesTheOldestDataAboveTheSizeLimit) {
  options_.bytes_max = 2u << 20;
  Open();
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  std::mt19937_64 random(1);
  uint64_t committed = 0;
  for (int minute = 0; minute < 300; ++minute) {
    clock_.Advance(kNsPerMinute);
    for (int i = 0; i < 1500; ++i) {
      collector.Add(clock_.Unix(), thread, collector.Stack({1 + random() % 100}), random());
      ++committed;
    }
    Commit(collector.Take(clock_.Unix()));
    Maintain(3);
  }
  Maintain();
  EXPECT_LT(store_->disk_bytes(), (2u << 20) + (5u << 20)) << "limit, plus pages not yet given back";
  const uint64_t left = Summed(kAlways);
  EXPECT_GT(left, 1500u);
  EXPECT_LT(left, committed);
  // The remaining samples are the newest.
  EXPECT_EQ(Summed({UnixNs{clock_.Unix().value - 10 * kNsPerMinute + 1}, kAlways.to}), 15'000u);
}

// The work of a run depends on what there is to do, not on the number of stored rows.
class MaintenanceWorkTest : public MaintenanceTest {
 protected:
  static constexpr int64_t kIdleStepsMax = 2000;
  static constexpr std::string_view kTables[] = {"trie_chunk",  "sample_chunk",  "minute_sum",
                                                 "event_chunk", "process_chunk", "string"};

  // Adds `rows` rows to each of kTables, in three days that ended a day ago. Only the columns of tries and
  // processes are read. All minutes until kStart are closed.
  void Fill(int rows) {
    Open();
    const int64_t closed = MinuteOf(kStart);
    auto insert = [&](std::string_view into, std::string_view values) {
      const absl::Status status = Shard().Execute(
          fmt::format("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {}), "
                      "m(i, minute) AS (SELECT i, {} + i * {} / {} FROM n) INSERT OR IGNORE INTO {} SELECT {} FROM m",
                      rows, closed - 4 * kMinutesPerDay, 3 * kMinutesPerDay, rows, into, values));
      ASSERT_TRUE(status.ok()) << status;
    };
    insert("trie_chunk (day, raw_bytes, columns)", "minute / 1440, 0, x'010000'");  // pieces without rows, as below
    insert("sample_chunk (minute, machine, type, samples, raw_bytes, columns)", "minute, 1, 1, 1, 0, x'00'");
    insert("minute_sum (minute, machine, type, pairs, raw_bytes, columns)", "minute, 1, 1, 1, 0, x'00'");
    insert("event_chunk (slot, machine, events, raw_bytes, columns)",
           fmt::format("minute / 10, {} + i, 1, 0, x'00'", rows));  // each machine has one chunk
    insert("process_chunk (first_slot, last_slot, machine, raw_bytes, columns)",
           "minute / 10, minute / 10, 1, 0, x'020000'");
    insert("string (hash, last_day, machine, text)", "i, minute / 1440, 0, CAST('text ' || i AS BLOB)");
    insert("node_day", "minute / 1440, i, 1, 1, 1, 1");
    const absl::Status status =
        Shard().Execute(fmt::format("UPDATE watermark SET value = {} WHERE name = 'closed_before'", closed));
    ASSERT_TRUE(status.ok()) << status;
    options_.raw_age_ns = 7 * kNsPerDay;
    Open();
    Maintain(40);  // a start looks at all chunks of events, and joins pieces of tries and processes
  }
  int64_t Rows() {
    int64_t rows = 0;
    for (const std::string_view table : kTables) rows += Count(std::string(table));
    return rows;
  }
  int64_t StepsOfRun() {
    steps_.Take();
    Maintain(1);
    return steps_.Take();
  }
  Database& Shard() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }

  SqliteSteps steps_;
};

TEST_F(MaintenanceWorkTest, AnIdleRunDoesNotDependOnTheRows) {
  for (const int rows : {100, 50'000}) {
    Fill(rows);
    EXPECT_LT(StepsOfRun(), kIdleStepsMax) << rows;
    clock_.Advance(20 * kNsPerMinute);  // minutes and slots without data end
    EXPECT_LT(StepsOfRun(), kIdleStepsMax) << rows;
  }
}

TEST_F(MaintenanceWorkTest, ANewMinuteDoesNotDependOnTheRows) {
  Fill(50'000);
  TestCollector collector("node-a");
  collector.Add(clock_.Unix(), collector.Thread(1, "a"), collector.Stack({1}));
  Commit(collector.Take(clock_.Unix()));
  clock_.Advance(10 * kNsPerMinute);
  const int64_t sums = Count("minute_sum");
  EXPECT_LT(StepsOfRun(), kIdleStepsMax);
  EXPECT_EQ(Count("minute_sum"), sums + 1);
}

TEST_F(MaintenanceWorkTest, RemovalDependsOnTheRemovedRows) {
  constexpr int64_t kStepsPerRow = 60;
  Fill(50'000);
  clock_.Advance(3 * kNsPerDay + kNsPerDay / 2);  // half a day is now older than 7 days
  const int64_t before = Rows();
  const int64_t steps = StepsOfRun();
  const int64_t removed = before - Rows();
  EXPECT_GE(removed, 3 * Maintenance::kRowsPerRun);
  EXPECT_LT(steps, kIdleStepsMax + removed * kStepsPerRow);
}

}  // namespace
}  // namespace tributary::store
