#include "reducer/store/store.h"

#include <algorithm>

#include "reducer/store/bounded_types.h"

namespace tributary::store {

// Uses FNV-1a. The result must be the same on every machine and in every release, because it says where data lie.
uint32_t ShardOf(std::string_view node_id, uint32_t shards) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : node_id) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return static_cast<uint32_t>((hash ^ (hash >> 32)) % std::max(shards, 1u));
}

void CommittedScan::MoveTo(int64_t chunk, std::optional<uint64_t> samples) {
  // Also counts samples that got no chunk, because they were too old for one when they arrived.
  if (samples && next.samples && *samples > *next.samples) expired_samples += *samples - *next.samples;
  if (chunk > next.chunk + 1) {
    expired_chunks += static_cast<uint64_t>(chunk - next.chunk - 1);
    next = {.chunk = chunk - 1};
  }
  next.samples = samples;
}

void NodeStatus::Add(const NamedAccounting& of_session, const NamedSampleCounts& stored_of_session) {
  BoundedTypes types;
  types.Keep(accounting);
  types.Keep(stored);
  accounting += types.Bound(of_session);
  stored += types.Bound(stored_of_session);
}

}  // namespace tributary::store
