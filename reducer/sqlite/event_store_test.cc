#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/sqlite_store_testing.h"

// The table of event chunks in a file.

namespace tributary::store {
namespace {

using ::testing::HasSubstr;

class EventStoreTest : public SqliteStoreTest {
 protected:
  Database& database() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }
  int64_t Query(const std::string& sql) { return database().QueryInt(sql).value(); }
  absl::Status Scan(TimeRange range, uint64_t* events) {
    *events = 0;
    return Reader()->ScanEvents(range, [&](const ProcessEventRow&) {
      ++*events;
      return absl::OkStatus();
    });
  }
  // Commits `batches` batches. Returns the number of events.
  int64_t Run(TestCollector& collector, int batches, int processes_per_batch) {
    std::mt19937_64 random(1);
    int pid = 1000;
    for (int batch = 0; batch < batches; ++batch) {
      const int64_t begin = clock_.Unix().value;
      for (int i = 0; i < processes_per_batch; ++i) {
        AddProcess(collector, ++pid, begin + i * (5 * kNsPerSecond / processes_per_batch), random);
      }
      clock_.Advance(5 * kNsPerSecond);
      EXPECT_FALSE(CommitOne(collector.Take(clock_.Unix())).need_dictionary);
    }
    return 3 * int64_t{batches} * processes_per_batch;
  }
  // Adds the events of a process that a shell forks, and that runs one of 40 programs for up to 0.2 s.
  static void AddProcess(TestCollector& collector, int pid, int64_t start, std::mt19937_64& random) {
    ProcessEvent event = collector.Event(ProcessEventKind::kStart, pid, "sh");
    event.parent = Pid{900 + static_cast<int>(random() % 10)};
    event.start_time_ns = start - kNow.value + 5'000'000'000'000;
    collector.Add(UnixNs{start}, event);
    const ProcessEvent exec = collector.Event(ProcessEventKind::kExec, pid, "tool-" + std::to_string(random() % 40));
    event.kind = ProcessEventKind::kExec;
    event.name = exec.name;
    event.executable_path = exec.executable_path;
    collector.Add(UnixNs{start + static_cast<int64_t>(random() % 500'000)}, event);
    const uint64_t run_ns = random() % 200'000'000;
    event.kind = ProcessEventKind::kExit;
    event.end = {.run_ns = run_ns,
                 .user_ns = random() % 50'000'000,
                 .system_ns = random() % 10'000'000,
                 .peak_rss_bytes = 4096 * (500 + random() % 1000)};
    collector.Add(UnixNs{start + static_cast<int64_t>(run_ns)}, event);
  }
};

TEST_F(EventStoreTest, ACommitWritesOneChunkForEachMachineAndSlot) {
  TestCollector a("node-a", 1), b("node-b", 2);
  std::vector<RowBatch> group;
  for (int i = 0; i < 3; ++i) {
    for (TestCollector* collector : {&a, &b}) {
      collector->Add(At(-i), collector->Event(ProcessEventKind::kStart, 7 + i, "sh"));
      collector->Add(At(-1000 - i), collector->Event(ProcessEventKind::kStart, 70 + i, "sh"));
      group.push_back(collector->Take(At(0)));
    }
  }
  ASSERT_TRUE(writer_->Commit(group).ok());
  EXPECT_EQ(Query("SELECT count(*) FROM event_chunk"), 4);
  EXPECT_EQ(Query("SELECT min(events) + max(events) FROM event_chunk"), 6);
  EXPECT_EQ(Query("SELECT count(DISTINCT slot) FROM event_chunk"), 2);
  EXPECT_EQ(Query("SELECT max(slot) FROM event_chunk"), SlotOf(At(0)).value);
}

TEST_F(EventStoreTest, ALargeCommitIsSplitIntoChunks) {
  TestCollector collector("node-a");
  const ProcessEvent event = collector.Event(ProcessEventKind::kStart, 7, "sh");
  for (size_t i = 0; i < kEventsPerChunkMax + 10; ++i) collector.Add(At(0), event);
  EXPECT_FALSE(CommitOne(collector.Take(At(0))).need_dictionary);
  EXPECT_EQ(Query("SELECT count(*) FROM event_chunk"), 2);
  uint64_t events = 0;
  ASSERT_TRUE(Scan(kAlways, &events).ok());
  EXPECT_EQ(events, kEventsPerChunkMax + 10);
  const auto count = [](const ProcessEventRow&) { return absl::OkStatus(); };
  EXPECT_EQ(Reader()->ScanCommittedEvents(0, 1, count).value(), 1) << "stops after the chunk that reaches the limit";
  EXPECT_EQ(Reader()->ScanCommittedEvents(0, kEventsPerChunkMax + 1, count).value(), 2);
}

// Queries and exporters skip it. set_aside_test.cc tests what the writer does with it.
TEST_F(EventStoreTest, ADamagedChunkIsSkipped) {
  TestCollector collector("node-a");
  collector.Add(At(-1000), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  collector.Add(At(0), collector.Event(ProcessEventKind::kStart, 8, "sh"));
  collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
  CommitOne(collector.Take(At(0)));
  for (const char* damage : {"columns = x'0105'", "columns = x''", "raw_bytes = 77", "raw_bytes = -1"}) {
    ASSERT_TRUE(database().Execute("SAVEPOINT before").ok());
    ASSERT_TRUE(database()
                    .Execute(std::string("UPDATE event_chunk SET ") + damage + " WHERE slot < " +
                             std::to_string(SlotOf(At(0)).value))
                    .ok());
    ASSERT_TRUE(database().Execute("RELEASE before").ok());
    uint64_t events = 0;
    EXPECT_TRUE(Scan(kAlways, &events).ok()) << damage;
    EXPECT_EQ(events, 1u) << damage;
    const auto ignore = [](const ProcessEventRow&) { return absl::OkStatus(); };
    EXPECT_EQ(Reader()->ScanCommittedEvents(0, 100, ignore).value(), 2);
    EXPECT_EQ(CountSamples(*Reader()), 1u);
  }
}

class EventMergerTest : public EventStoreTest {
 protected:
  // Commits one event per second of `node`, from 0 to `seconds`, with a commit for each.
  void CommitMany(TestCollector& collector, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      collector.Add(At(i), collector.Event(ProcessEventKind::kStart, i, "p" + std::to_string(i)));
      ASSERT_FALSE(CommitOne(collector.Take(At(i))).need_dictionary);
    }
  }
  absl::Status Merge() {
    clock_.Advance(2 * 60 * kNsPerMinute);
    return writer_->Maintain(clock_.Unix());
  }
  // Returns the pids of the events after `*cursor`, and moves the cursor.
  std::vector<int32_t> Committed(int64_t* cursor, size_t events_max) {
    std::vector<int32_t> pids;
    const auto next = Reader()->ScanCommittedEvents(*cursor, events_max, [&](const ProcessEventRow& row) {
      EXPECT_EQ(row.name, "p" + std::to_string(row.pid.value));
      pids.push_back(row.pid.value);
      return absl::OkStatus();
    });
    *cursor = next.value();
    return pids;
  }
  int64_t Chunks() { return Query("SELECT count(*) FROM event_chunk"); }
};

TEST_F(EventMergerTest, JoinsTheChunksOfAMachineAndSlot) {
  TestCollector a("node-a", 1), b("node-b", 2);
  CommitMany(a, 20);
  CommitMany(b, 5);
  const int64_t bytes = Query("SELECT sum(length(columns)) FROM event_chunk");
  ASSERT_TRUE(writer_->Maintain(clock_.Unix()).ok());
  EXPECT_EQ(Chunks(), 25) << "the slot is not old enough";
  int64_t at_end = 0;
  EXPECT_EQ(Committed(&at_end, 100).size(), 25u);
  ASSERT_TRUE(Merge().ok());
  EXPECT_EQ(Chunks(), 2);
  EXPECT_LT(Query("SELECT sum(length(columns)) FROM event_chunk"), bytes / 3);
  uint64_t events = 0;
  ASSERT_TRUE(Scan(kAlways, &events).ok());
  EXPECT_EQ(events, 25u);
  ASSERT_TRUE(Scan({At(3), At(5)}, &events).ok());
  EXPECT_EQ(events, 4u);
  int64_t from_start = 0;
  const std::vector<int32_t> pids = Committed(&from_start, 100);
  EXPECT_EQ(pids.size(), 25u);
  EXPECT_TRUE(std::is_sorted(pids.begin(), pids.begin() + 20)) << "in order of time";
  EXPECT_TRUE(Committed(&at_end, 100).empty()) << "no event is new to an exporter that has sent all";
  EXPECT_EQ(Reader()->CountPassedEvents(0).value(), 0u) << "no event has expired";
  EXPECT_EQ(Reader()->CountPassedEvents(at_end).value(), 25u);
  EXPECT_EQ(from_start, at_end);
}

TEST_F(EventMergerTest, AnExporterThatIsBehindMissesNoEvent) {
  TestCollector collector("node-a");
  CommitMany(collector, 10);
  int64_t cursor = 0;
  std::vector<int32_t> seen = Committed(&cursor, 4);
  ASSERT_TRUE(Merge().ok());
  for (const int32_t pid : Committed(&cursor, 100)) seen.push_back(pid);
  EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 10u);
}

TEST_F(EventMergerTest, LateEventsAreJoinedAfterARestart) {
  TestCollector collector("node-a");
  CommitMany(collector, 10);
  ASSERT_TRUE(Merge().ok());
  for (int i = 0; i < 2; ++i) {
    collector.Add(At(1), collector.Event(ProcessEventKind::kStart, i, "p" + std::to_string(i)));
    CommitOne(collector.Take(clock_.Unix()));
  }
  ASSERT_TRUE(Merge().ok());
  EXPECT_EQ(Chunks(), 3);
  Reopen();
  ASSERT_TRUE(Merge().ok());
  EXPECT_EQ(Chunks(), 1);
  uint64_t events = 0;
  ASSERT_TRUE(Scan(kAlways, &events).ok());
  EXPECT_EQ(events, 12u);
}

TEST_F(EventMergerTest, AJoinedChunkStaysBelowTheLimit) {
  TestCollector collector("node-a");
  for (int i = 0; i < 5; ++i) {
    const ProcessEvent event = collector.Event(ProcessEventKind::kStart, 7, "sh");
    for (size_t n = 0; n < kEventsPerChunkMax / 3; ++n) collector.Add(At(i), event);
    CommitOne(collector.Take(At(i)));
  }
  ASSERT_TRUE(Merge().ok());
  EXPECT_EQ(Chunks(), 2);
  EXPECT_LE(Query("SELECT max(events) FROM event_chunk"), static_cast<int64_t>(kEventsPerChunkMax));
  uint64_t events = 0;
  ASSERT_TRUE(Scan(kAlways, &events).ok());
  EXPECT_EQ(events, 5 * (kEventsPerChunkMax / 3));
}

// A node may send so many events that all the chunks of one slot are too much work for one call.
TEST_F(EventMergerTest, ACallReadsALimitedNumberOfEvents) {
  TestCollector collector("node-a");
  for (int i = 0; i < 30; ++i) {
    const ProcessEvent event = collector.Event(ProcessEventKind::kStart, 7, "sh");
    for (size_t n = 0; n < kProcessEventsPerBatchMax; ++n) collector.Add(At(i), event);
    CommitOne(collector.Take(At(i)));
  }
  ASSERT_TRUE(Merge().ok());
  EXPECT_GT(Chunks(), 10);
  EXPECT_LT(Chunks(), 30);
  ASSERT_TRUE(Merge().ok());
  EXPECT_EQ(Chunks(), 10) << "continues where the last call stopped";
  uint64_t events = 0;
  ASSERT_TRUE(Scan(kAlways, &events).ok());
  EXPECT_EQ(events, 30 * kProcessEventsPerBatchMax);
}

TEST_F(EventMergerTest, ADamagedChunkDoesNotStopTheOthers) {
  TestCollector a("node-a", 1), b("node-b", 2);
  CommitMany(a, 3);
  CommitMany(b, 3);
  ASSERT_TRUE(database().Execute("UPDATE event_chunk SET columns = x'0109' WHERE id = 2").ok());
  EXPECT_TRUE(Merge().ok());
  EXPECT_EQ(Chunks(), 4) << "the chunks of the other machine are joined";
  EXPECT_TRUE(writer_->Maintain(clock_.Unix()).ok());
  EXPECT_EQ(Chunks(), 3) << "the damaged chunk was set aside";
}

// A reader keeps only some of the texts of events, and must still return the right ones.
TEST_F(EventStoreTest, ManyDifferentTextsAreReadRight) {
  for (uint8_t chunk = 0; chunk < 4; ++chunk) {
    TestCollector collector("node-a", chunk);  // one dictionary does not hold all texts
    for (int i = 0; i < 10'000; ++i) {
      const int number = chunk * 10'000 + i;
      collector.Add(At(chunk), collector.Event(ProcessEventKind::kStart, number, std::to_string(number)));
    }
    EXPECT_FALSE(CommitOne(collector.Take(At(chunk))).need_dictionary);
  }
  uint64_t events = 0;
  const auto reader = Reader();
  const auto check = [&](const ProcessEventRow& row) {
    EXPECT_EQ(row.name, std::to_string(row.pid.value));
    EXPECT_EQ(row.executable_path, "/bin/" + std::to_string(row.pid.value));
    ++events;
    return absl::OkStatus();
  };
  ASSERT_TRUE(reader->ScanEvents(kAlways, check).ok());
  EXPECT_EQ(events, 40'000u);
}

// The figures in docs/store.md. A batch comes every 5 s. Each process is forked, runs a program and exits.
TEST_F(EventStoreTest, AnEventTakesFewBytes) {
  struct Load {
    int batches, processes_per_batch;
    double committed_max, joined_max;  // bytes per event
  };
  for (const Load& load : {Load{360, 1, 64, 40}, Load{120, 25, 16, 13}, Load{12, 500, 14, 12}}) {
    ASSERT_TRUE(database().Execute("DELETE FROM event_chunk").ok());
    TestCollector collector("node-a", static_cast<uint8_t>(load.processes_per_batch % 200));
    const int64_t events = Run(collector, load.batches, load.processes_per_batch);
    const auto bytes_per_event = [&](const char* when) {
      const auto bytes = static_cast<double>(Query("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'event_chunk%'"));
      RecordProperty(std::string(when) + "_" + std::to_string(load.processes_per_batch),
                     std::to_string(bytes / static_cast<double>(events)));
      return bytes / static_cast<double>(events);
    };
    EXPECT_LT(bytes_per_event("committed"), load.committed_max) << load.processes_per_batch;
    clock_.Advance(2 * 60 * kNsPerMinute);
    ASSERT_TRUE(writer_->Maintain(clock_.Unix()).ok());
    EXPECT_LT(bytes_per_event("joined"), load.joined_max) << load.processes_per_batch;
  }
}

}  // namespace
}  // namespace tributary::store
