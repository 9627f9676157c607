#include "reducer/ingest/session_memory.h"

#include <algorithm>
#include <utility>

namespace tributary::ingest {

using store::MemoryKind;

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
  Count(entries_.front(), 0, 0);
  if (entries_.size() > sessions_max_) Erase(std::prev(entries_.end()));
  return entries_.front();
}

void SessionMemory::KeepDecoder(const SessionId& id, std::optional<intake::BatchDecoder> decoder) {
  Entry* entry = Find(id);
  if (entry == nullptr) return;
  entry->connected = false;
  if (decoder) entry->decoder = std::move(decoder);
  Count(*entry, 0, 0);
}

std::optional<intake::BatchDecoder> SessionMemory::TakeDecoder(Entry& entry) {
  std::optional<intake::BatchDecoder> decoder = std::exchange(entry.decoder, std::nullopt);
  Count(entry, decoder ? decoder->memory_bytes() : 0, 0);
  return decoder;
}

void SessionMemory::ForgetDictionary(Entry& entry) {
  entry.decoder.reset();
  entry.dictionary_held = false;
  entry.generation = entry.refused_generation = 0;
  entry.have = {};
  std::vector<ExecutableId>().swap(entry.executables);  // clear would keep the memory
  Count(entry, 0, 0);
}

void SessionMemory::CountConnected(Entry& entry, std::string_view node_id, size_t decoder_bytes, size_t waiting_bytes) {
  entry.connected = true;
  if (entry.node_id.empty()) entry.node_id = node_id;
  Count(entry, decoder_bytes, waiting_bytes);
}

void SessionMemory::Count(Entry& entry, size_t decoder_bytes, size_t waiting_bytes) {
  constexpr size_t kEntryBytes = sizeof(Entry) + 2 * sizeof(void*) + sizeof(SessionId) + sizeof(List::iterator) + 1;
  store::MemoryUse use;
  use[MemoryKind::kSessions] = kEntryBytes + store::AllocatedBytes(entry.node_id);
  use[MemoryKind::kDecoders] = decoder_bytes + (entry.decoder ? entry.decoder->memory_bytes() : 0);
  use[MemoryKind::kExecutables] = entry.executables.capacity() * sizeof(ExecutableId) + waiting_bytes;
  ledger_.Count(&entry.memory, use);
}

std::vector<SessionId> SessionMemory::Evict() {
  std::vector<SessionId> connected;
  const size_t excess = ledger_.Excess();
  if (excess == 0) return connected;
  std::vector<store::Evictable> all;
  std::vector<List::iterator> places;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    all.push_back({it->memory.total(), !it->connected, it->node_id});
    places.push_back(it);
  }
  for (const size_t chosen : store::ChooseEvictions(all, excess)) {
    const bool is_idle = all[chosen].is_idle;
    ledger_.CountEviction(is_idle);
    if (refusals_ != nullptr) refusals_->Add(places[chosen]->node_id, "memory");
    if (is_idle) {
      Erase(places[chosen]);
      continue;
    }
    Entry& entry = *places[chosen];
    connected.push_back(entry.id);
    const uint32_t refused = std::max(entry.refused_generation, entry.generation);
    ForgetDictionary(entry);
    entry.refused_generation = refused;
  }
  return connected;
}

void SessionMemory::Erase(List::iterator entry) {
  ledger_.Count(&entry->memory, {});
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

}  // namespace tributary::ingest
