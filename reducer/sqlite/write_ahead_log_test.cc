#include "reducer/sqlite/write_ahead_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

constexpr UnixNs kStart{1'700'000'040 * kNsPerSecond};  // a whole minute
constexpr uint64_t kBytesMax = 16u << 20;
constexpr uint64_t kRegularBytes = 32 + 64 * (8192 + 24);  // of the log of a shard with this limit
constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

class WriteAheadLogTest : public ::testing::Test {
 protected:
  WriteAheadLogTest() : clock_(MonotonicNs{kNsPerSecond}, kStart) {}

  void Open(uint64_t bytes_max) {
    options_.bytes_max = bytes_max;
    writer_.reset();
    store_.reset();
    store_ = SqliteStore::Open(directory_.path(), options_, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
  }
  Database& database() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }
  // Values do not compress, so `samples` samples have about 9 bytes each.
  void Commit(int samples) {
    for (int i = 0; i < samples; ++i) {
      collector_.Add(clock_.Unix(), collector_.Thread(1, "a"), collector_.Stack({1 + random_() % 100}), random_());
    }
    committed_ += static_cast<uint64_t>(samples);
    const RowBatch batch = collector_.Take(clock_.Unix());
    auto outcomes = writer_->Commit({&batch, 1});
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    ASSERT_FALSE(outcomes->at(0).need_dictionary);
  }
  void Maintain(int calls = 1) {
    for (int i = 0; i < calls; ++i) {
      const absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  uint64_t LogBytes() const {
    const std::string path = store_->ShardPath(0) + "-wal";
    return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
  }
  uint64_t UsedBytes() {
    const int64_t pages = *database().QueryInt("PRAGMA page_count") - *database().QueryInt("PRAGMA freelist_count");
    return static_cast<uint64_t>(pages * *database().QueryInt("PRAGMA page_size"));
  }
  uint64_t Stored() {
    uint64_t samples = 0;
    EXPECT_TRUE(store_->OpenReader(0)
                    .value()
                    ->ScanSums(kAlways,
                               [&](const SumColumns& columns) {
                                 for (uint64_t count : columns.counts) samples += count;
                                 return absl::OkStatus();
                               })
                    .ok());
    return samples;
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  StoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
  TestCollector collector_{"node-a"};
  std::mt19937_64 random_{1};
  uint64_t committed_ = 0;
};

TEST_F(WriteAheadLogTest, DependsOnTheLimitOfTheShard) {
  Database database = Database::Open(directory_.path() + "/x.db", Database::Mode::kReadWrite).value();
  ASSERT_TRUE(database.Execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL").ok());
  struct {
    uint64_t shard_bytes_max;
    int64_t pages;
  } const cases[] = {{0, 8}, {2u << 20, 8}, {8u << 20, 32}, {16u << 20, 64}, {160u << 20, 640}, {10ull << 30, 4096}};
  for (const auto& [shard_bytes_max, pages] : cases) {
    auto log = WriteAheadLog::Prepare(database, shard_bytes_max);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(database.QueryInt("PRAGMA wal_autocheckpoint").value(), pages);
    EXPECT_EQ(database.QueryInt("PRAGMA journal_size_limit").value(), 32 + pages * (8192 + 24));
  }
}

TEST_F(WriteAheadLogTest, IsEmptiedAfterALongQuery) {
  Open(kBytesMax);
  Commit(1);
  auto query = store_->OpenReader(0).value();
  while (LogBytes() < 3 * kRegularBytes) Commit(10'000);
  Maintain();
  EXPECT_GE(LogBytes(), 3 * kRegularBytes) << "the query reads a state that is older than the log's end";
  query.reset();
  Maintain();
  EXPECT_EQ(LogBytes(), 0u);
  EXPECT_EQ(Stored(), committed_);
}

// Commits wait as long as the writer does. A query of several minutes must not slow down all commits.
TEST_F(WriteAheadLogTest, WaitsForOneLongQueryOnlyOnceIn30Seconds) {
  Database own = OpenShardForWriting(directory_.path() + "/own.db").value();
  auto log = WriteAheadLog::Prepare(own, 0).value();
  Database query = OpenShardForReading(directory_.path() + "/own.db").value();
  ASSERT_TRUE(query.Execute("BEGIN; SELECT count(*) FROM string").ok());
  ASSERT_TRUE(own.Execute("CREATE TABLE filler (bytes); INSERT INTO filler VALUES (zeroblob(2000000))").ok());
  for (int second = 0; second < 40; second += 5) {
    ASSERT_TRUE(log->Shorten(UnixNs{kStart.value + second * kNsPerSecond}).ok());
    EXPECT_EQ(log->waits_in_vain(), second < 30 ? 1 : 2);
  }
  ASSERT_TRUE(query.Execute("COMMIT").ok());
  ASSERT_TRUE(log->Shorten(kStart).ok());
  EXPECT_EQ(std::filesystem::file_size(directory_.path() + "/own.db-wal"), 0u);
}

TEST_F(WriteAheadLogTest, StaysShortWithoutQueries) {
  Open(kBytesMax);
  uint64_t longest = 0;
  while (UsedBytes() < 2 * kRegularBytes) {
    Commit(10'000);
    longest = std::max(longest, LogBytes());
  }
  EXPECT_LT(longest, kRegularBytes + (704u << 10)) << "with one commit above it";
}

TEST_F(WriteAheadLogTest, CountsAsSizeOfTheShard) {
  Open(1u << 30);
  for (int minute = 0; minute < 120; ++minute) {
    clock_.Advance(kNsPerMinute);
    Commit(3000);
    Maintain();
  }
  clock_.Advance(10 * kNsPerMinute);
  Maintain(20);
  constexpr uint64_t kRoom = 60'000;
  const uint64_t bytes_max = UsedBytes() + kRoom;
  Open(bytes_max);
  Maintain(3);
  EXPECT_EQ(Stored(), committed_) << "the limit is not reached";
  collector_.StartGeneration();  // a new writer does not know the session's dictionary

  // Each commit writes the same few pages again, so only the log grows.
  while (LogBytes() < kRoom * 3 / 2 && !HasFatalFailure()) Commit(1);
  ASSERT_LT(UsedBytes(), bytes_max);
  Maintain(3);
  EXPECT_LT(Stored(), committed_);
  EXPECT_GT(Stored(), 3000u);
}

// The query keeps the log long. If retention removed data because of this, it would make the log even longer.
TEST_F(WriteAheadLogTest, ALongQueryDoesNotCauseRemoval) {
  Open(kBytesMax);
  while (UsedBytes() < kBytesMax / 8 * 7) Commit(10'000);
  auto query = store_->OpenReader(0).value();
  while (LogBytes() < 6 * kRegularBytes) Commit(1);
  clock_.Advance(10 * kNsPerMinute);
  Maintain(5);
  ASSERT_LT(UsedBytes() + kRegularBytes, kBytesMax);
  ASSERT_GT(UsedBytes() + LogBytes(), kBytesMax);
  EXPECT_EQ(Stored(), committed_);
}

}  // namespace
}  // namespace tributary::store
