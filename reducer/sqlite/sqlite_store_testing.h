#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

// A store of one shard in a directory of its own.
namespace tributary::store {

inline constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};  // a whole minute
inline constexpr TimeRange kAlways{UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}};

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() : clock_(MonotonicNs{kNsPerSecond}, kNow) { Reopen(); }

  void Reopen() {
    writer_.reset();
    store_.reset();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store =
        SqliteStore::Open(directory_.path(), options_, clock_, metrics_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    writer_ = store_->OpenWriter(0).value();
  }
  std::unique_ptr<StoreReader> Reader(uint32_t shard = 0) { return store_->OpenReader(shard).value(); }
  ShardWriter::Outcome CommitOne(const RowBatch& batch) {
    absl::StatusOr<std::vector<ShardWriter::Outcome>> outcomes = writer_->Commit({&batch, 1});
    EXPECT_TRUE(outcomes.ok()) << outcomes.status();
    return outcomes.ok() ? outcomes->at(0) : ShardWriter::Outcome{};
  }
  static UnixNs At(int64_t seconds) { return UnixNs{kNow.value + seconds * kNsPerSecond}; }

  TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  StoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ShardWriter> writer_;
};

inline uint64_t CountSamples(StoreReader& reader, TimeRange range = kAlways) {
  uint64_t count = 0;
  EXPECT_TRUE(reader
                  .ScanSamples(range,
                               [&](const SampleColumns& columns) {
                                 count += columns.times.size();
                                 return absl::OkStatus();
                               })
                  .ok());
  return count;
}

}  // namespace tributary::store
