#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/store/memory_shard.h"
#include "reducer/store/store.h"

namespace tributary::store {

// The data of a MemoryStore. To simulate a restart, destroy the store and open another on the same data.
struct MemoryData {
  std::mutex mutex;  // guards all members below while a store uses the data
  std::vector<MemoryShard> shards;
  std::map<std::pair<std::string, uint32_t>, ExportPosition> positions;
  std::optional<absl::Status> position_error;  // returned by SavePosition
};

// A store in memory, for tests of code that reads or writes stores. It passes all tests that a Store must pass
// (store_conformance_testing.h). A reader copies its shard when it is opened. Thread-safe, unless a test changes the
// data directly.
class MemoryStore : public Store, private PositionStore {
 public:
  // Opens a store on the contents of `data`. `clock` and `metrics` must outlive the store.
  MemoryStore(std::shared_ptr<MemoryData> data, const StoreOptions& options, const Clock& clock, Metrics& metrics);

  uint32_t shard_count() const override;
  absl::StatusOr<std::unique_ptr<ShardWriter>> OpenWriter(uint32_t shard) override;
  absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) override;
  PositionStore& positions() override { return *this; }
  uint64_t disk_bytes() const override;

 private:
  void MoveSessions();
  absl::StatusOr<std::optional<ExportPosition>> LoadPosition(std::string_view exporter, uint32_t shard) override;
  absl::Status SavePosition(std::string_view exporter, uint32_t shard, const ExportPosition& position) override;

  const std::shared_ptr<MemoryData> data_;
  const StoreOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  std::vector<bool> writer_opened_;  // guarded by the data's mutex
};

}  // namespace tributary::store
