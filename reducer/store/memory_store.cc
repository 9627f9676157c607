#include "reducer/store/memory_store.h"

#include <iterator>

#include "reducer/store/memory_reader.h"
#include "reducer/store/memory_writer.h"

namespace tributary::store {

MemoryStore::MemoryStore(std::shared_ptr<MemoryData> data, const StoreOptions& options, const Clock& clock,
                         Metrics& metrics)
    : data_(std::move(data)), options_(options), clock_(clock), metrics_(metrics) {
  const std::lock_guard lock(data_->mutex);
  while (data_->shards.size() < options_.shards) data_->shards.emplace_back().types.clear();
  writer_opened_.resize(data_->shards.size());
  MoveSessions();
}

// Moves each session to the shard where its node's next batch will arrive. That shard must know the durable sequence
// and the accounting.
void MemoryStore::MoveSessions() {
  for (size_t from = 0; from < data_->shards.size(); ++from) {
    MemoryShard& source = data_->shards[from];
    for (auto it = source.sessions.begin(); it != source.sessions.end();) {
      const auto next = std::next(it);
      const uint32_t to = ShardOf(it->second.node_id, options_.shards);
      if (to != from) {
        MemoryShard& target = data_->shards[to];
        target.machines.try_emplace(it->second.node_id, source.machines[it->second.node_id]);
        target.sessions.insert(source.sessions.extract(it));
      }
      it = next;
    }
  }
}

uint32_t MemoryStore::shard_count() const { return static_cast<uint32_t>(data_->shards.size()); }

absl::StatusOr<std::unique_ptr<ShardWriter>> MemoryStore::OpenWriter(uint32_t shard) {
  {
    const std::lock_guard lock(data_->mutex);
    if (shard >= shard_count()) return absl::InvalidArgumentError("no such shard");
    if (writer_opened_[shard]) return absl::FailedPreconditionError("the shard has a writer already");
    writer_opened_[shard] = true;
  }
  return std::make_unique<MemoryWriter>(data_->shards[shard], data_->mutex, options_, clock_, metrics_);
}

absl::StatusOr<std::unique_ptr<StoreReader>> MemoryStore::OpenReader(uint32_t shard) {
  const std::lock_guard lock(data_->mutex);
  if (shard >= shard_count()) return absl::InvalidArgumentError("no such shard");
  return std::make_unique<MemoryReader>(data_->shards[shard]);
}

uint64_t MemoryStore::disk_bytes() const {
  const std::lock_guard lock(data_->mutex);
  uint64_t bytes = sizeof(MemoryData);
  for (const MemoryShard& shard : data_->shards) {
    bytes += shard.samples.size() * sizeof(MemoryShard::Sample) + shard.events.size() * sizeof(MemoryShard::Event);
  }
  return bytes;
}

absl::StatusOr<std::optional<ExportPosition>> MemoryStore::LoadPosition(std::string_view exporter, uint32_t shard) {
  const std::lock_guard lock(data_->mutex);
  const auto found = data_->positions.find({std::string(exporter), shard});
  return found != data_->positions.end() ? std::optional(found->second) : std::nullopt;
}

absl::Status MemoryStore::SavePosition(std::string_view exporter, uint32_t shard, const ExportPosition& position) {
  const std::lock_guard lock(data_->mutex);
  if (data_->position_error) return *data_->position_error;
  data_->positions[{std::string(exporter), shard}] = position;
  return absl::OkStatus();
}

}  // namespace tributary::store
