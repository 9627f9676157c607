#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/shard_reader.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

// What a reader is told of processes and threads.
class ProcessRowsTest : public testing::Test {
 protected:
  UnixNs At(int64_t minutes) const { return UnixNs{kNow.value + minutes * kNsPerMinute}; }
  std::unique_ptr<StoreReader> Reader() { return store_->OpenReader(0).value(); }
  void Open() {
    store_ = SqliteStore::Open(directory_.path(), {}, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
  }
  void Commit(const RowBatch& batch) {
    auto outcomes = writer_->Commit({&batch, 1});
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    ASSERT_FALSE(outcomes->at(0).need_dictionary);
  }
  std::vector<std::string> NamesIn(int64_t from_minute, int64_t to_minute, const ProcessSet* only = nullptr) {
    std::vector<std::string> names;
    const TimeRange range{At(from_minute), At(to_minute)};
    const std::vector<ProcessRow> rows = Reader()->Processes(range, only).value();
    for (const ProcessRow& row : rows) names.push_back(row.comm);
    if (only == nullptr) {
      std::vector<std::string> scanned;
      const auto visit = [&scanned](const ProcessRow& row) {
        scanned.push_back(row.comm);
        return absl::OkStatus();
      };
      EXPECT_TRUE(Reader()->ScanProcesses(range, visit).ok());
      EXPECT_THAT(scanned, testing::UnorderedElementsAreArray(names));
    }
    return names;
  }

  static constexpr UnixNs kNow{1'760'000'400 * kNsPerSecond};  // a slot's start
  TestDirectory directory_;
  FakeClock clock_{MonotonicNs{kNsPerSecond}, kNow};
  Metrics metrics_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
};

// A process is told of in every slot that has a sample of it, under one number, and found there.
TEST_F(ProcessRowsTest, AreFoundWhereTheirSamplesAre) {
  Open();
  TestCollector collector("node-a");
  ThreadRef early = collector.Thread(1, "early"), both = collector.Thread(2, "both"),
            late = collector.Thread(3, "late");
  NodeRef leaf = collector.Stack({1});
  collector.Add(At(-30), early, leaf);
  collector.Add(At(-29), both, leaf);
  collector.Add(At(-2), both, leaf);
  collector.Add(At(-1), late, leaf);
  Commit(collector.Take(At(0)));
  EXPECT_THAT(NamesIn(-30, -20), testing::ElementsAre("early", "both"));
  EXPECT_THAT(NamesIn(-10, 0), testing::ElementsAre("both", "late"));
  EXPECT_THAT(NamesIn(-40, 0), testing::UnorderedElementsAre("early", "both", "late")) << "each once";
  const auto refuse = [](const ProcessRow&) { return absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanProcesses({At(-40), At(0)}, refuse)));
  EXPECT_THAT(NamesIn(-20, -10), testing::IsEmpty());
  EXPECT_THAT(NamesIn(-10, -10), testing::IsEmpty());

  std::vector<ProcessRow> rows = Reader()->Processes({At(-10), At(0)}, nullptr).value();
  const ProcessSet only{rows[1].no};
  EXPECT_THAT(NamesIn(-40, 0, &only), testing::ElementsAre("late"));
  std::vector<ThreadRow> threads = Reader()->Threads({At(-40), At(0)}, only).value();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].tid, Tid{3});
  EXPECT_EQ(threads[0].process, rows[1].no);
}

TEST_F(ProcessRowsTest, NumbersAreNotGivenTwiceAcrossRestarts) {
  Open();
  NodeRef leaf;
  for (uint8_t session = 1; session <= 3; ++session) {
    TestCollector collector("node-a", session);
    leaf = collector.Stack({1});
    collector.Add(At(-1), collector.Thread(session, "p" + std::to_string(session)), leaf);
    Commit(collector.Take(At(0)));
    writer_.reset();
    store_.reset();
    Open();
  }
  ProcessSet numbers;
  const std::vector<ProcessRow> rows = Reader()->Processes({At(-10), At(0)}, nullptr).value();
  for (const ProcessRow& row : rows) numbers.insert(row.no);
  EXPECT_EQ(numbers.size(), 3u);
}

// A file of schema 2, whose processes and threads were rows.
TEST_F(ProcessRowsTest, RowsOfSchemaTwoAreConverted) {
  const std::string path = directory_.path() + "/old.db";
  {
    Database old = OpenShardForWriting(path).value();
    ASSERT_TRUE(old.Execute(R"sql(
      DROP TABLE process_chunk;
      DROP TABLE sample_type;
      DELETE FROM watermark WHERE name LIKE 'next%';
      CREATE INDEX session_last_seen ON session (last_seen);
      CREATE TABLE process (
        id INTEGER PRIMARY KEY, machine INTEGER NOT NULL, boot INTEGER NOT NULL, pid INTEGER NOT NULL,
        start_time_ns INTEGER NOT NULL, exec_sequence INTEGER NOT NULL, parent INTEGER NOT NULL, comm INTEGER NOT NULL,
        executable_path INTEGER NOT NULL, container_id INTEGER NOT NULL, cgroup_path INTEGER NOT NULL,
        executable INTEGER NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        UNIQUE (machine, boot, pid, start_time_ns, exec_sequence));
      CREATE TABLE thread (
        id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL, name INTEGER NOT NULL,
        last_day INTEGER NOT NULL, UNIQUE (process, tid, name));
      INSERT INTO machine VALUES (1, 'node-a', 'host-a', '', '', '', 2, 19);
      INSERT INTO string VALUES (1, '', 0), (2, 'worker', 0), (3, 'c0ffee', 0);
      INSERT INTO process VALUES (7, 1, 1, 42, 99, 1, 41, 2, 1, 3, 1, 5, 1760000400000000000, 1760004000000000000);
      INSERT INTO thread VALUES (9, 7, 43, 2, 20370);
      PRAGMA user_version = 2;
    )sql")
                    .ok());
  }
  Database upgraded = OpenShardForWriting(path).value();
  EXPECT_EQ(upgraded.QueryInt("PRAGMA user_version").value(), kShardSchema);
  EXPECT_EQ(upgraded.QueryInt("SELECT value FROM watermark WHERE name = 'next_process'").value(), 8);
  EXPECT_EQ(upgraded.QueryInt("SELECT value FROM watermark WHERE name = 'next_thread'").value(), 10);
  EXPECT_EQ(upgraded.QueryInt("SELECT count(*) FROM sqlite_schema WHERE name IN ('process', 'thread')").value(), 0);
  TrieCache cache(1000);
  auto reader = SqliteShardReader::Open(path, 0, cache).value();
  for (int64_t minute : {0, 30, 59}) {
    const TimeRange range{At(minute), At(minute + 1)};
    auto processes = reader->Processes(range, nullptr).value();
    ASSERT_EQ(processes.size(), 1u) << minute;
    EXPECT_EQ(processes[0].no, ProcessNo{7});
    EXPECT_EQ(processes[0].host_name, "host-a");
    EXPECT_EQ(processes[0].pid, Pid{42});
    EXPECT_EQ(processes[0].parent, Pid{41});
    EXPECT_EQ(processes[0].start_time_ns, 99);
    EXPECT_EQ(processes[0].exec_sequence, 1u);
    EXPECT_EQ(processes[0].comm, "worker");
    EXPECT_EQ(processes[0].container_id, "c0ffee");
    EXPECT_EQ(processes[0].executable, ExecutableNo{5});
    auto threads = reader->Threads(range, {ProcessNo{7}}).value();
    ASSERT_EQ(threads.size(), 1u);
    EXPECT_EQ(threads[0].no, ThreadNo{9});
    EXPECT_EQ(threads[0].tid, Tid{43});
    EXPECT_EQ(threads[0].name, "worker");
  }
  EXPECT_TRUE(reader->Processes({At(-20), At(-10)}, nullptr)->empty());
}

}  // namespace
}  // namespace tributary::store
