#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};
constexpr int kBatches = 400;
constexpr int kSamplesPerBatch = 50;
constexpr int kEventsPerBatch = 3;

RowBatch MakeBatch(TestCollector& collector, int number) {
  for (int i = 0; i < kSamplesPerBatch; ++i) {
    collector.Add(kNow, collector.Thread(1 + number % 7, "t"),
                  collector.Stack({1, static_cast<uint64_t>(number), static_cast<uint64_t>(i % 9)}));
  }
  for (int i = 0; i < kEventsPerBatch; ++i) {
    collector.Add(kNow, collector.Event(ProcessEventKind::kStart, number * kEventsPerBatch + i, "t"));
  }
  if (number % 10 == 0) collector.Lose(LossReason::kRingFull, 2);
  return collector.Take(kNow);
}

// Runs in the child. Commits the batches above the mark, and reports each commit through the pipe.
[[noreturn]] void CommitAll(const std::string& path, uint32_t generation, int acks) {
  FakeClock clock(MonotonicNs{kNsPerSecond}, kNow);
  Metrics metrics;
  auto store = SqliteStore::Open(path, {}, clock, metrics).value();
  auto writer = store->OpenWriter(0).value();
  TestCollector collector("node-a");
  uint64_t durable = 0;
  if (auto found = writer->FindSession(collector.info().session_id); found.ok()) durable = found->durable_sequence;
  for (uint32_t i = 1; i < generation; ++i) collector.StartGeneration();
  std::vector<RowBatch> group;
  bool first = true;
  for (int number = 1; number <= kBatches; ++number) {
    RowBatch batch = MakeBatch(collector, number);
    if (batch.sequence <= durable) continue;
    if (first) {
      // The first batch of a generation carries all definitions made so far.
      collector.StartGeneration();
      batch = collector.Resend(batch);
      first = false;
    }
    group.push_back(std::move(batch));
    if (group.size() < 3 && number < kBatches) continue;
    auto outcomes = writer->Commit(group);
    if (!outcomes.ok() || outcomes->back().need_dictionary) _exit(2);
    const uint64_t sequence = outcomes->back().sequence;
    if (write(acks, &sequence, sizeof(sequence)) != sizeof(sequence)) _exit(3);
    group.clear();
    if (number % 30 == 0 && !writer->Maintain(UnixNs{kNow.value + 10 * kNsPerMinute}).ok()) _exit(4);
  }
  _exit(0);
}

// The test kills the process without warning again and again. The store then holds exactly the batches up to the mark,
// never fewer than reported, and captured = stored + lost once everything is sent.
TEST(StoreKilled, KeepsEveryBatchOnceAcrossKills) {
  TestDirectory directory;
  FakeClock clock(MonotonicNs{kNsPerSecond}, kNow);
  Metrics metrics;
  uint64_t durable = 0;
  for (uint32_t round = 1; durable < kBatches; ++round) {
    ASSERT_LT(round, 200u);
    int acks[2];
    ASSERT_EQ(pipe(acks), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(acks[0]);
      CommitAll(directory.path(), round, acks[1]);
    }
    close(acks[1]);
    // Kills in the middle of a commit: after a different number of acks each round, and then some microseconds.
    uint64_t acknowledged = durable, sequence = 0;
    for (uint32_t i = 0; i < 1 + round % 5 && read(acks[0], &sequence, sizeof(sequence)) == sizeof(sequence); ++i) {
      acknowledged = sequence;
    }
    usleep((round * 379) % 3000);
    kill(child, SIGKILL);
    while (read(acks[0], &sequence, sizeof(sequence)) == sizeof(sequence)) acknowledged = sequence;
    close(acks[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);

    auto store = SqliteStore::Open(directory.path(), {}, clock, metrics).value();
    auto writer = store->OpenWriter(0).value();
    TestCollector collector("node-a");
    durable = writer->FindSession(collector.info().session_id)->durable_sequence;
    EXPECT_GE(durable, acknowledged) << "what was acknowledged is durable";
    auto reader = store->OpenReader(0).value();
    Totals totals = TotalsOf(*reader);
    EXPECT_EQ(totals.stored, durable * kSamplesPerBatch);
    EXPECT_EQ(totals.captured, totals.stored + totals.lost);
    EXPECT_EQ(totals.endings, totals.stored);
    uint64_t samples = 0, sums = 0;
    ASSERT_TRUE(reader
                    ->ScanSamples(kAlways,
                                  [&](const SampleColumns& columns) {
                                    samples += columns.times.size();
                                    return absl::OkStatus();
                                  })
                    .ok());
    ASSERT_TRUE(reader
                    ->ScanSums(kAlways,
                               [&](const SumColumns& columns) {
                                 for (uint64_t n : columns.counts) sums += n;
                                 return absl::OkStatus();
                               })
                    .ok());
    EXPECT_EQ(samples, totals.stored);
    EXPECT_EQ(sums, totals.stored);
    std::set<int32_t> pids;
    uint64_t events = 0;
    ASSERT_TRUE(reader
                    ->ScanEvents(kAlways,
                                 [&](const ProcessEventRow& row) {
                                   EXPECT_EQ(row.executable_path, "/bin/t");
                                   pids.insert(row.pid.value);
                                   ++events;
                                   return absl::OkStatus();
                                 })
                    .ok());
    EXPECT_EQ(events, durable * kEventsPerBatch);
    EXPECT_EQ(pids.size(), events) << "each event is stored once";
    const std::vector<NodeStatus> nodes = reader->Nodes().value();
    EXPECT_EQ(nodes.empty() ? 0 : nodes[0].stored.events(), events);
    EXPECT_EQ(
        static_cast<SqliteShardWriter*>(writer.get())
            ->database()
            .QueryInt(
                "SELECT (SELECT coalesce(sum(data_bytes), 0) FROM node_day) - (SELECT coalesce(sum(length(columns) "
                "+ 56), 0) FROM (SELECT columns FROM sample_chunk UNION ALL SELECT columns FROM minute_sum UNION "
                "ALL SELECT columns FROM event_chunk))")
            .value(),
        0)
        << "the bytes of the node are those of its rows";
    EXPECT_EQ(nodes.empty() ? 0 : nodes[0].accounting.captured.events(), events);
  }
}

// The child commits batches that close a killed session, again and again, and is itself killed. Each loss counts once,
// however often it was reported.
TEST(StoreKilled, ClosesEachSessionOnceAcrossKills) {
  constexpr uint8_t kSessions = 20;
  TestDirectory directory;
  FakeClock clock(MonotonicNs{kNsPerSecond}, kNow);
  Metrics metrics;
  for (uint32_t round = 0; round < 12; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = SqliteStore::Open(directory.path(), {}, clock, metrics).value();
      auto writer = store->OpenWriter(0).value();
      for (uint8_t id = 1; id <= kSessions; ++id) {
        TestCollector collector("node-a", id);
        uint64_t durable = 0;
        if (auto found = writer->FindSession(collector.info().session_id); found.ok())
          durable = found->durable_sequence;
        std::vector<RowBatch> group;
        for (int i = 0; i < 3; ++i) {
          for (int j = 0; j < 10; ++j) collector.Add(kNow, collector.Thread(1, "t"), collector.Stack({1}));
          RowBatch batch = collector.Take(kNow);
          TestCollector before("node-a", static_cast<uint8_t>(id - 1));
          if (i == 0 && id > 1) {
            batch.closes.push_back({before.info().session_id, 35, LossReason::kCollectorKilled});
          }
          if (batch.sequence <= durable) continue;
          if (group.empty()) {
            collector.StartGeneration();
            batch = collector.Resend(batch);
          }
          group.push_back(std::move(batch));
        }
        auto outcomes = writer->Commit(group);
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
  auto store = SqliteStore::Open(directory.path(), {}, clock, metrics).value();
  auto writer = store->OpenWriter(0).value();
  const Totals totals = TotalsOf(*store->OpenReader(0).value());
  EXPECT_EQ(totals.lost, 5u * (kSessions - 1));
  EXPECT_EQ(totals.captured, 35u * (kSessions - 1) + 30);
  EXPECT_EQ(totals.captured, totals.stored + totals.lost);
}

// Only the first cursor is synced to the disk, because the clock stands still.
TEST(StoreKilled, KeepsEverySavedCursor) {
  TestDirectory directory;
  FakeClock clock(MonotonicNs{kNsPerSecond}, kNow);
  Metrics metrics;
  int64_t last = 0;
  for (uint32_t round = 0; round < 10; ++round) {
    int saved[2];
    ASSERT_EQ(pipe(saved), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(saved[0]);
      auto store = SqliteStore::Open(directory.path(), {}, clock, metrics).value();
      for (int64_t chunk = last + 1;; ++chunk) {
        if (!store->positions().SavePosition("otlp", 0, {.cursor = {.chunk = chunk}}).ok()) _exit(2);
        if (write(saved[1], &chunk, sizeof(chunk)) != sizeof(chunk)) _exit(3);
      }
    }
    close(saved[1]);
    int64_t reported = 0, chunk = 0;
    for (uint32_t i = 0; i < 3 + 50 * round && read(saved[0], &chunk, sizeof(chunk)) == sizeof(chunk); ++i) {
      reported = chunk;
    }
    kill(child, SIGKILL);
    while (read(saved[0], &chunk, sizeof(chunk)) == sizeof(chunk)) reported = chunk;
    close(saved[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    auto store = SqliteStore::Open(directory.path(), {}, clock, metrics).value();
    last = store->positions().LoadPosition("otlp", 0).value().value().cursor.chunk;
    EXPECT_GE(last, reported);
    EXPECT_LE(last, reported + 1) << "the one that was saved, but not reported";
  }
}

}  // namespace
}  // namespace tributary::store
