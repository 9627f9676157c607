#include "reducer/ingest/session_memory.h"

namespace tributary::ingest {

SessionMemory::Entry* SessionMemory::Find(const SessionId& id) {
  auto it = by_id_.find(id);
  if (it == by_id_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return &entries_.front();
}

SessionMemory::Entry& SessionMemory::Add(const SessionId& id, uint64_t durable_sequence) {
  if (Entry* known = Find(id)) return *known;
  entries_.emplace_front();
  entries_.front().id = id;
  entries_.front().durable_sequence = durable_sequence;
  by_id_.emplace(id, entries_.begin());
  if (entries_.size() > sessions_max_) {
    by_id_.erase(entries_.back().id);
    entries_.pop_back();
  }
  return entries_.front();
}

}  // namespace tributary::ingest
