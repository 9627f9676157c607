#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "reducer/store/damage_list.h"
#include "reducer/store/store.h"

namespace tributary::store {

class Database;
class DamageReports;
class SharedExecutableNumbers;
class TaskFailures;
class TrieCache;

// The embedded store (docs/store.md). Each shard has an SQLite file, `shard-<n>.db`, which contains column chunks.
// `store.db` contains the exporters' positions and the number of shards. The file `LOCK` is locked as long as this
// object exists, so that no other reducer writes to the directory. The store may be used on any thread. Each writer and
// each reader may be used on only one thread. The store must outlive its writers and readers.
class SqliteStore : public Store, public DamageSource, private PositionStore {
 public:
  static constexpr int64_t kSyncPositionsNs = 5 * kNsPerSecond;

  // Creates `directory` if it does not exist. Returns InvalidArgument if the number of shards is not 1 to kShardsMax.
  // Returns AlreadyExists if another reducer uses the directory, and FailedPrecondition if a newer release wrote it.
  // Otherwise returns the errors of sqlite.h. `clock` and `metrics` must outlive the store.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(std::string directory, const StoreOptions& options,
                                                           const Clock& clock, Metrics& metrics);
  ~SqliteStore() override;

  uint32_t shard_count() const override { return shard_count_; }
  absl::StatusOr<std::unique_ptr<ShardWriter>> OpenWriter(uint32_t shard) override;
  absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) override;
  PositionStore& positions() override { return *this; }
  uint64_t disk_bytes() const override;
  std::vector<DamageEntry> ListDamage() override;

  std::string ShardPath(uint32_t shard) const;

 private:
  SqliteStore(std::string directory, const StoreOptions& options, const Clock& clock, Metrics& metrics);
  absl::Status Start();
  absl::Status Lock();
  // If the number of shards has changed, moves each node's sessions to the node's new shard. The shard that receives
  // the node's next batch must have the sessions' durable sequence and accounting.
  absl::Status MoveSessions();

  absl::StatusOr<std::optional<ExportPosition>> LoadPosition(std::string_view exporter, uint32_t shard) override;
  // Waits for the disk only if the last wait was kSyncPositionsNs ago.
  absl::Status SavePosition(std::string_view exporter, uint32_t shard, const ExportPosition& position) override;

  const std::string directory_path_;
  const StoreOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  Fd lock_;
  uint32_t shard_count_ = 0;
  std::unique_ptr<TrieCache> tries_;
  std::vector<std::unique_ptr<DamageReports>> damage_;                 // of each shard
  std::vector<std::unique_ptr<SharedExecutableNumbers>> executables_;  // of each shard
  std::vector<std::unique_ptr<TaskFailures>> failures_;                // of each shard
  std::mutex mutex_;
  std::unique_ptr<Database> directory_;   // guarded by mutex_
  std::vector<bool> writer_opened_;       // guarded by mutex_
  std::optional<MonotonicNs> synced_at_;  // guarded by mutex_; the time of the last position that was synced
};

}  // namespace tributary::store
