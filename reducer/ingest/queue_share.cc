#include "reducer/ingest/queue_share.h"

#include <algorithm>

#include "base/status.h"

namespace tributary::ingest {

size_t MemoryOf(const RowBatch& batch) {
  return sizeof(batch) + batch.samples.size() * sizeof(Sample) + MemoryOf(batch.definitions) +
         batch.closes.size() * sizeof(ClosedSession);
}

size_t QueueShare::CostOf(size_t bytes) const {
  return std::max(bytes, options_.bytes_max / std::max<size_t>(options_.batches_max, 1));
}

bool QueueShare::Allows(std::string_view node_id, size_t bytes) const {
  const auto it = nodes_.find(ToAbsl(node_id));
  if (it == nodes_.end()) return true;
  const size_t free = options_.bytes_max - std::min(bytes_, options_.bytes_max);
  return it->second.bytes + CostOf(bytes) <= free / 3;
}

void QueueShare::Add(std::string_view node_id, size_t bytes) {
  Held& held = nodes_[std::string(node_id)];
  const size_t cost = CostOf(bytes);
  held.batches.push_back(cost);
  held.bytes += cost;
  bytes_ += cost;
}

void QueueShare::Remove(std::string_view node_id) {
  const auto it = nodes_.find(ToAbsl(node_id));
  if (it == nodes_.end()) return;
  Held& held = it->second;
  held.bytes -= held.batches.front();
  bytes_ -= held.batches.front();
  held.batches.pop_front();
  if (held.batches.empty()) nodes_.erase(it);
}

}  // namespace tributary::ingest
