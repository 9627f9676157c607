#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_conformance_testing.h"

// Test fixture: a SqliteStore with one shard, in a temporary directory.
namespace tributary::store {

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

}  // namespace tributary::store
