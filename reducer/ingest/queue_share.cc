#include "reducer/ingest/queue_share.h"

#include <algorithm>

#include "base/status.h"

namespace tributary::ingest {

namespace {

size_t PartsOf(const SampleCounts& counts) { return counts.parts().size() * sizeof(SampleCounts::Part); }

}  // namespace

size_t MemoryOf(const RowBatch& batch) {
  size_t bytes = sizeof(batch) + batch.samples.size() * sizeof(Sample) + batch.events.size() * sizeof(ProcessEvent) +
                 MemoryOf(batch.definitions) + batch.closes.size() * sizeof(ClosedSession) +
                 batch.sample_types.size() * sizeof(SampleTypeDefinition) + PartsOf(batch.accounting.captured);
  for (const SampleTypeDefinition& type : batch.sample_types) bytes += type.info.name.size() + type.info.unit.size();
  for (const SampleCounts& lost : batch.accounting.lost) bytes += PartsOf(lost);
  for (const ClosedSession& closed : batch.closes) bytes += PartsOf(closed.captured);
  return bytes;
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
