#include "reducer/sqlite/maintenance.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

constexpr UnixNs kStart{1'700'000'040 * kNsPerSecond};  // a whole minute
constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

using Sums = std::map<std::tuple<std::string, Day, uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>>;

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
  // Until there is nothing left to do.
  void Maintain(int calls = 50) {
    for (int i = 0; i < calls; ++i) {
      absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  int64_t Count(const std::string& table) {
    return static_cast<SqliteShardWriter*>(writer_.get())->database().QueryInt("SELECT count(*) FROM " + table).value();
  }
  Sums FromSums(TimeRange range) {
    Sums sums;
    EXPECT_TRUE(Reader()
                    ->ScanSums(range,
                               [&](const SumColumns& c) {
                                 for (size_t i = 0; i < c.nodes.size(); ++i) {
                                   auto& sum =
                                       sums[{std::string(c.node_id), c.day, c.nodes[i].value, c.processes[i].value}];
                                   sum.first += c.values[i];
                                   sum.second += c.counts[i];
                                 }
                                 return absl::OkStatus();
                               })
                    .ok());
    return sums;
  }
  Sums FromSamples(TimeRange range) {
    Sums sums;
    EXPECT_TRUE(Reader()
                    ->ScanSamples(range,
                                  [&](const SampleColumns& c) {
                                    for (size_t i = 0; i < c.nodes.size(); ++i) {
                                      EXPECT_GE(c.times[i], range.from);
                                      EXPECT_LT(c.times[i], range.to);
                                      auto& sum =
                                          sums[{std::string(c.node_id), c.day, c.nodes[i].value, c.processes[i].value}];
                                      sum.first += c.values[i];
                                      sum.second += c.counts[i];
                                    }
                                    return absl::OkStatus();
                                  })
                    .ok());
    return sums;
  }
  static uint64_t Total(const Sums& sums) {
    uint64_t count = 0;
    for (const auto& [key, sum] : sums) count += sum.second;
    return count;
  }

  TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  StoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
};

// Every sample is counted once, whatever the range, whichever minutes are closed, and however late a sample comes.
TEST_F(MaintenanceTest, SumsEqualSamplesForAnyRange) {
  Open();
  std::mt19937_64 random(11);
  TestCollector a("node-a", 1), b("node-b", 2);
  const int64_t minutes = 20;
  auto add_batch = [&](TestCollector& collector, int64_t offset_ns) {
    for (int i = 0; i < 40; ++i) {
      ThreadRef thread = collector.Thread(static_cast<int>(1 + random() % 5), "t");
      NodeRef leaf = collector.Stack({1, random() % 4, random() % 6});
      UnixNs time{clock_.Unix().value - offset_ns - static_cast<int64_t>(random() % (5 * kNsPerSecond))};
      collector.Add(time, thread, leaf, 1 + random() % 1000);
    }
    Commit(collector.Take(clock_.Unix()));
  };
  auto compare = [&] {
    for (int i = 0; i < 60; ++i) {
      const int64_t span = minutes * kNsPerMinute;
      int64_t from = static_cast<int64_t>(random() % span), to = static_cast<int64_t>(random() % span);
      if (random() % 3 == 0) from -= from % kNsPerMinute;
      if (random() % 3 == 0) to -= to % kNsPerMinute;
      const TimeRange range{UnixNs{kStart.value + from}, UnixNs{kStart.value + to}};
      ASSERT_EQ(FromSums(range), FromSamples(range)) << from << " " << to;
    }
    ASSERT_EQ(FromSums(kAlways), FromSamples(kAlways));
  };
  for (int64_t step = 0; step < minutes * 4; ++step) {
    clock_.Advance(15 * kNsPerSecond);
    add_batch(random() % 2 == 0 ? a : b, 0);
    if (step == 10) compare();  // nothing closed yet
    if (step > 20) Maintain(1);
    if (step % 7 == 0) add_batch(a, static_cast<int64_t>(random() % 8) * kNsPerMinute);  // late, and some very late
  }
  compare();
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  EXPECT_GT(Count("minute_sum"), 20);
  compare();
  EXPECT_EQ(Total(FromSums(kAlways)), TotalsOf(*Reader()).stored);
}

TEST_F(MaintenanceTest, SumsOutliveRawColumnsAndStillTileRanges) {
  options_.raw_age_ns = 10 * kNsPerMinute;
  Open();
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(kNsPerMinute);
    collector.Add(UnixNs{clock_.Unix().value - 10 * kNsPerSecond}, thread, collector.Stack({1}));
    Commit(collector.Take(clock_.Unix()));
  }
  Maintain();

  EXPECT_LT(Total(FromSamples(kAlways)), 12u);
  EXPECT_EQ(Total(FromSums(kAlways)), 30u);
  // Ranges that share borders share no sample, even where only sums are left.
  for (int64_t width : {17, 45, 61, 100}) {
    uint64_t total = 0;
    for (int64_t at = -100; at < 40 * 60; at += width) {
      total += Total(
          FromSums({UnixNs{kStart.value + at * kNsPerSecond}, UnixNs{kStart.value + (at + width) * kNsPerSecond}}));
    }
    EXPECT_EQ(total, 30u) << width;
  }
}

TEST_F(MaintenanceTest, ADayGoesWithItsTrieAndUnusedDefinitions) {
  options_.raw_age_ns = 12 * 60 * kNsPerMinute;
  options_.sum_age_ns = 2 * kNsPerDay;
  Open();
  TestCollector collector("node-a");
  ThreadRef old_thread = collector.Thread(1, "short-lived"), kept = collector.Thread(2, "long-lived");
  collector.Add(clock_.Unix(), old_thread, collector.Stack({1, 2}));
  collector.Add(clock_.Unix(), kept, collector.Stack({1, 3}));
  Commit(collector.Take(clock_.Unix()));
  auto old_reader = Reader();
  const Day first_day = DayOf(clock_.Unix());
  for (int day = 0; day < 5; ++day) {
    clock_.Advance(kNsPerDay);
    Maintain(5);
    collector.Add(clock_.Unix(), kept, collector.Stack({1, 3}));
    Commit(collector.Take(clock_.Unix()));
    Maintain();
  }
  EXPECT_EQ(Reader()->LoadTrie(first_day).value()->parents.size(), 1u);
  EXPECT_EQ(old_reader->LoadTrie(first_day).value()->parents.size(), 4u) << "a reader keeps its moment";
  auto processes = Reader()->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].comm, "long-lived");
  EXPECT_EQ(Count("process_chunk"), 3) << "one a day kept";
  EXPECT_EQ(Count("string WHERE text = CAST('short-lived' AS BLOB)"), 0);
  EXPECT_EQ(Count("string WHERE text = CAST('long-lived' AS BLOB)"), 1);
  EXPECT_LE(Count("trie_chunk"), 3);

  // A process that sleeps longer than its row lives comes back under the ids of its session.
  collector.Add(clock_.Unix(), old_thread, collector.Stack({1, 2}));
  Commit(collector.Take(clock_.Unix()));
  EXPECT_EQ(Reader()->Processes(kAlways, nullptr)->size(), 2u);
  EXPECT_EQ(Reader()->Executables()->back().path.empty(), false);
}

TEST_F(MaintenanceTest, SessionsLeaveWithTheirData) {
  options_.sum_age_ns = 2 * kNsPerDay;
  Open();
  TestCollector collector("node-a");
  collector.Add(clock_.Unix(), collector.Thread(1, "a"), collector.Stack({1}));
  Commit(collector.Take(clock_.Unix()));
  clock_.Advance(2 * kNsPerDay);
  Maintain();
  EXPECT_EQ(Reader()->Nodes()->size(), 1u);
  clock_.Advance(2 * kNsPerDay);
  Maintain();
  EXPECT_TRUE(Reader()->Nodes()->empty());
  EXPECT_EQ(Count("machine"), 0);
  EXPECT_TRUE(absl::IsNotFound(writer_->FindSession(collector.info().session_id).status()));
}

TEST_F(MaintenanceTest, TheOldestGoWhenThereIsTooMuch) {
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
  auto* writer = static_cast<SqliteShardWriter*>(writer_.get());
  ASSERT_TRUE(writer->database().Execute("PRAGMA wal_checkpoint(TRUNCATE)").ok());
  EXPECT_LT(store_->disk_bytes(), (2u << 20) + (5u << 20)) << "limit, plus pages not yet given back";
  const uint64_t left = Total(FromSums(kAlways));
  EXPECT_GT(left, 1500u);
  EXPECT_LT(left, committed);
  // What is left is the newest.
  EXPECT_EQ(Total(FromSums({UnixNs{clock_.Unix().value - 10 * kNsPerMinute + 1}, kAlways.to})), 15'000u);
}

}  // namespace
}  // namespace tributary::store
