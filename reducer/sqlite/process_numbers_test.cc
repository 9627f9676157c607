#include "reducer/sqlite/process_numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store_testing.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

constexpr uint32_t kLast = UINT32_MAX;

// The value of each sample is the pid of its process, so a sample under another process is found.
class ProcessNumbersTest : public SqliteStoreTest {
 protected:
  static constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

  // Changes the file while it has no writer.
  void Change(const std::string& sql) {
    writer_.reset();
    {
      Database database = Database::Open(store_->ShardPath(0), Database::Mode::kReadWrite).value();
      const absl::Status changed = database.Execute(sql);
      ASSERT_TRUE(changed.ok()) << changed;
    }
    Reopen();
  }
  // The next process and the next thread get this number.
  void SetNext(uint32_t next) {
    Change("UPDATE watermark SET value = " + std::to_string(next) + " WHERE name LIKE 'next%'");
  }
  // Sessions keep only `age_max` numbers.
  void LimitAge(uint32_t age_max) {
    const std::string path = store_->ShardPath(0);
    writer_.reset();
    writer_ = SqliteShardWriter::Open({.path = path, .number_age_max = age_max}, clock_, metrics_).value();
  }
  int64_t Query(const std::string& sql) {
    return static_cast<SqliteShardWriter*>(writer_.get())->database().QueryInt(sql).value();
  }
  // Commits a sample of each process.
  void Commit(TestCollector& collector, const std::vector<int>& pids) {
    for (const int pid : pids) {
      collector.Add(clock_.Unix(), collector.Thread(pid, "process"), collector.Stack({1, 2}),
                    static_cast<uint64_t>(pid));
    }
    CommitOne(collector.Take(clock_.Unix()));
  }
  // A collector with a new session commits a sample of each of these processes.
  void Commit(const std::vector<int>& pids) {
    TestCollector collector("node", ++sessions_);
    Commit(collector, pids);
  }
  void Maintain() {
    for (int i = 0; i < 50; ++i) {
      const absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  // The samples of the store, by how they are shown.
  struct Shown {
    uint64_t right = 0;
    uint64_t unnumbered = 0;  // under the common process of the node, or under none
    uint64_t wrong = 0;       // under another process or thread
    friend bool operator==(const Shown&, const Shown&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Shown& shown) {
      return out << shown.right << " right, " << shown.unnumbered << " unnumbered, " << shown.wrong << " wrong";
    }
  };
  Shown ShownSamples(const TimeRange& range = kAlways) {
    auto reader = Reader();
    const auto [pids, tids] = Numbers(*reader, range);
    Shown shown;
    EXPECT_TRUE(reader
                    ->ScanSamples(range,
                                  [&](const SampleColumns& columns) {
                                    for (size_t i = 0; i < columns.values.size(); ++i) {
                                      const auto pid = static_cast<int32_t>(columns.values[i]);
                                      const bool has_tid = columns.threads[i].value != 0;
                                      Count(pids, columns.processes[i], pid, 1, &shown);
                                      if (has_tid && tids.at(columns.threads[i]) != pid) ++shown.wrong;
                                    }
                                    return absl::OkStatus();
                                  })
                    .ok());
    return shown;
  }
  Shown ShownSums(const TimeRange& range = kAlways) {
    auto reader = Reader();
    const auto [pids, tids] = Numbers(*reader, range);
    Shown shown;
    EXPECT_TRUE(reader
                    ->ScanSums(range,
                               [&](const SumColumns& columns) {
                                 for (size_t i = 0; i < columns.values.size(); ++i) {
                                   const uint64_t pid = columns.values[i] / columns.counts[i];
                                   Count(pids, columns.processes[i], static_cast<int32_t>(pid), columns.counts[i],
                                         &shown);
                                 }
                                 return absl::OkStatus();
                               })
                    .ok());
    return shown;
  }
  std::set<uint32_t> NumbersOf(int pid) {
    std::set<uint32_t> numbers;
    auto reader = Reader();
    const Pids pids = Numbers(*reader, kAlways).first;
    for (const auto& [no, its_pid] : pids) {
      if (its_pid == pid) numbers.insert(no.value);
    }
    return numbers;
  }
  uint64_t Unnumbered() { return metrics_.AddCounter("tributary_reducer_unnumbered_samples_total", "").value(); }

 private:
  using Pids = std::map<ProcessNo, int32_t>;
  using Tids = std::map<ThreadNo, int32_t>;
  static std::pair<Pids, Tids> Numbers(StoreReader& reader, const TimeRange& range) {
    std::pair<Pids, Tids> numbers;
    ProcessSet all;
    const std::vector<ProcessRow> processes = reader.Processes(range, nullptr).value();
    for (const ProcessRow& row : processes) {
      numbers.first[row.no] = row.pid.value;
      all.insert(row.no);
    }
    const std::vector<ThreadRow> threads = reader.Threads(range, all).value();
    for (const ThreadRow& row : threads) numbers.second[row.no] = row.tid.value;
    return numbers;
  }
  static void Count(const Pids& pids, ProcessNo no, int32_t pid, uint64_t count, Shown* shown) {
    const auto found = pids.find(no);
    const int32_t shown_pid = found == pids.end() ? 0 : found->second;
    (shown_pid == pid ? shown->right : shown_pid == 0 ? shown->unnumbered : shown->wrong) += count;
  }

  uint8_t sessions_ = 0;
};

TEST_F(ProcessNumbersTest, ContinueAtOneAfterTheLastNumber) {
  SetNext(kLast - 2);
  TestCollector collector("long", 99);
  Commit(collector, {1, 2});
  Commit({3, 4});
  Reopen();
  Commit({5, 6});
  collector.StartGeneration();
  Commit(collector, {1, 7});
  EXPECT_EQ(NumbersOf(3), std::set<uint32_t>{kLast});
  EXPECT_EQ(NumbersOf(4), std::set<uint32_t>{1});
  EXPECT_EQ(NumbersOf(5), std::set<uint32_t>{2}) << "a restart changes nothing";
  EXPECT_EQ(ShownSamples(), (Shown{.right = 8}));
  clock_.Advance(5 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(ShownSums(), (Shown{.right = 8}));
  EXPECT_EQ(Unnumbered(), 0u);
}

TEST_F(ProcessNumbersTest, NumbersOfStoredDataAreNotGivenAgain) {
  Commit({1, 2, 3, 4, 5});
  clock_.Advance(3 * kNsPerDay);
  Maintain();
  SetNext(kLast - 2);
  Commit({11, 12, 13, 14, 15});
  clock_.Advance(5 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(ShownSums(), (Shown{.right = 5, .unnumbered = 5}));
  EXPECT_EQ(Unnumbered(), 5u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 10u) << "no sample is lost";

  // The days of the first processes expire.
  clock_.Advance(6 * kNsPerDay);
  Maintain();
  Commit({21, 22, 23, 24, 25});
  EXPECT_EQ(Unnumbered(), 5u);
  EXPECT_EQ(ShownSamples(), (Shown{.right = 5}));
  EXPECT_EQ(NumbersOf(23), std::set<uint32_t>{1});
  Reopen();
  Commit({31, 32});
  clock_.Advance(5 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(ShownSums(), (Shown{.right = 7, .unnumbered = 5}));
}

// A session has the number of a process in memory for as long as the process runs.
TEST_F(ProcessNumbersTest, AProcessThatRunsForLongGetsNewNumbers) {
  LimitAge(8);
  TestCollector collector("long", 99);
  for (int i = 0; i < 10; ++i) {
    Commit(collector, {1});
    Commit({100 + i, 200 + i, 300 + i});
    clock_.Advance(kNsPerMinute);
  }
  EXPECT_GE(NumbersOf(1).size(), 3u);
  EXPECT_LE(NumbersOf(1).size(), 10u);
  EXPECT_EQ(NumbersOf(101).size(), 1u);
  EXPECT_EQ(ShownSamples(), (Shown{.right = 40}));
}

TEST_F(ProcessNumbersTest, WithoutAnyFreeNumberSamplesAreStoredUnderNoProcess) {
  Commit({1, 2});
  Change("UPDATE number_day SET process = (SELECT value FROM watermark WHERE name = 'next_process')");
  Commit({3, 4});
  EXPECT_EQ(ShownSamples(), (Shown{.right = 2, .unnumbered = 2}));
  EXPECT_EQ(Unnumbered(), 2u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 4u);
}

TEST_F(ProcessNumbersTest, ADamagedNumberOfADayProtectsAllNumbers) {
  Commit({1, 2});
  Change("UPDATE number_day SET thread = -7");
  Commit({3, 4});
  EXPECT_EQ(ShownSamples(), (Shown{.right = 2, .unnumbered = 2}));
}

// Removes what schemas 15 to 18 added.
const std::string kToSchemaFourteen =
    "DROP TABLE loss; DELETE FROM watermark WHERE name IN ('threads_from', 'losses_sealed', 'events_committed'); "
    "DROP INDEX event_chunk_events; DROP TABLE number_day; PRAGMA user_version = 14";

TEST_F(ProcessNumbersTest, NumbersOfEarlierReleasesAreProtected) {
  Commit({1, 2, 3, 4, 5});
  Change(kToSchemaFourteen);
  SetNext(kLast - 2);
  Commit({11, 12, 13, 14, 15});
  EXPECT_EQ(ShownSamples(), (Shown{.right = 5, .unnumbered = 5}));
}

// For example, all samples were stored without a number of their process.
TEST_F(ProcessNumbersTest, AnEarlierReleaseMayHaveGivenNoNumber) {
  Commit({1});
  Change(kToSchemaFourteen +
         "; DELETE FROM process_chunk; UPDATE watermark SET value = 1 WHERE name IN ('next_process', 'next_thread')");
  EXPECT_EQ(Query("SELECT process FROM number_day"), 0);
  EXPECT_EQ(Query("SELECT thread FROM number_day"), 0);
}

TEST_F(ProcessNumbersTest, NumbersFromBeforeARestartAtOneAreProtected) {
  SetNext(kLast - 2);
  Commit({1, 2, 3, 4, 5});
  Change(kToSchemaFourteen);
  EXPECT_EQ(Query("SELECT process FROM number_day"), kLast - 2);
  EXPECT_EQ(Query("SELECT thread FROM number_day"), kLast - 2);
  Commit({6});
  EXPECT_EQ(NumbersOf(6), std::set<uint32_t>{3});
  EXPECT_EQ(ShownSamples(), (Shown{.right = 6}));
}

// The numbers of a failed transaction stay with its processes.
TEST_F(ProcessNumbersTest, AFailedCommitDoesNotUnprotectItsNumbers) {
  TestCollector collector("long", 99);
  Commit(collector, {1});
  Database& database = static_cast<SqliteShardWriter*>(writer_.get())->database();
  ASSERT_TRUE(
      database
          .Execute("CREATE TEMP TRIGGER refuse BEFORE INSERT ON session BEGIN SELECT RAISE(ABORT, 'test'); END; "
                   "DELETE FROM number_day")
          .ok());
  TestCollector refused("refused", 98);
  refused.Add(clock_.Unix(), refused.Thread(2, "process"), refused.Stack({1, 2}), 2);
  const RowBatch batch = refused.Take(clock_.Unix());
  ASSERT_FALSE(writer_->Commit({&batch, 1}).ok());
  ASSERT_TRUE(database.Execute("DROP TRIGGER refuse").ok());
  CommitOne(batch);
  EXPECT_EQ(Query("SELECT process FROM number_day"), 1);
  EXPECT_EQ(Query("SELECT value FROM watermark WHERE name = 'next_process'"), 4);
  EXPECT_EQ(ShownSamples(), (Shown{.right = 2}));
}

}  // namespace
}  // namespace tributary::store
