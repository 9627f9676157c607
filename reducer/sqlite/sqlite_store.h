#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "reducer/store/store.h"

namespace tributary::store {

class Database;
class TrieCache;

// The embedded store (docs/store.md). One SQLite file per shard, `shard-<n>.db`, holds column chunks. `store.db` holds
// the data of the directory. `LOCK` is locked for the life of this object, so that no second reducer writes here. Any
// thread may use the store, but each writer and each reader belongs to one thread. The store must outlive its writers
// and readers.
class SqliteStore : public Store, private CursorStore {
 public:
  // Returns AlreadyExists if another reducer uses the directory. Returns PermissionDenied or ResourceExhausted if the
  // system reports them. Creates `directory` if it is missing. `clock` and `metrics` must outlive the store.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(std::string directory, const StoreOptions& options,
                                                           const Clock& clock, Metrics& metrics);
  ~SqliteStore() override;

  uint32_t shard_count() const override { return shard_count_; }
  absl::StatusOr<std::unique_ptr<ShardWriter>> OpenWriter(uint32_t shard) override;
  absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) override;
  CursorStore& cursors() override { return *this; }
  uint64_t disk_bytes() const override;

  std::string ShardPath(uint32_t shard) const;

 private:
  SqliteStore(std::string directory, const StoreOptions& options, const Clock& clock, Metrics& metrics);
  absl::Status Start();
  absl::Status Lock();
  // Moves a node's sessions to its new shard when the number of shards has changed. The shard where the node's next
  // batch arrives must know the durable sequence and the accounting.
  absl::Status MoveSessions();

  absl::StatusOr<int64_t> LoadCursor(std::string_view exporter, uint32_t shard) override;
  absl::Status SaveCursor(std::string_view exporter, uint32_t shard, int64_t cursor) override;

  const std::string directory_path_;
  const StoreOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  Fd lock_;
  uint32_t shard_count_ = 0;
  std::unique_ptr<TrieCache> tries_;
  std::mutex mutex_;
  std::unique_ptr<Database> directory_;  // guarded by mutex_
  std::vector<bool> writer_opened_;      // guarded by mutex_
};

}  // namespace tributary::store
