#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/store/memory_reader.h"
#include "reducer/store/memory_store.h"

namespace tributary::store {

using FakeShard = MemoryShard;
using FakeReader = MemoryReader;

struct FakeSurroundings {
  explicit FakeSurroundings(uint32_t shards) { data->shards.resize(shards); }

  const std::shared_ptr<MemoryData> data = std::make_shared<MemoryData>();
  FakeClock clock;
  Metrics metrics;
};

// A MemoryStore for tests of code that reads stores. The test writes its data directly into `shards`. A reader sees the
// data that were there when it was opened.
class FakeStore : private FakeSurroundings, public MemoryStore {
 public:
  explicit FakeStore(uint32_t count = 1)
      : FakeSurroundings(count),
        MemoryStore(data, {.shards = count}, clock, metrics),
        shards(data->shards),
        position_error(data->position_error) {}

  absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) override {
    ++readers_opened;
    return MemoryStore::OpenReader(shard);
  }
  uint64_t disk_bytes() const override { return 4096; }
  // Returns the last chunk before the saved cursor; 0: there is no cursor.
  int64_t Cursor(std::string_view exporter, uint32_t shard) {
    return positions().LoadPosition(exporter, shard).value().value_or(ExportPosition{}).cursor.chunk;
  }

  std::vector<FakeShard>& shards;
  std::optional<absl::Status>& position_error;  // returned by SavePosition
  std::atomic<int> readers_opened = 0;
};

}  // namespace tributary::store
