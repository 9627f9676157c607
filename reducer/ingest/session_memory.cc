#include "reducer/ingest/session_memory.h"

#include <utility>

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
    TakeDecoder(entries_.back());
    by_id_.erase(entries_.back().id);
    entries_.pop_back();
  }
  return entries_.front();
}

void SessionMemory::KeepDecoder(const SessionId& id, std::optional<intake::BatchDecoder> decoder) {
  Entry* entry = Find(id);
  if (entry == nullptr || !decoder) return;
  TakeDecoder(*entry);
  decoder_bytes_ += decoder->memory_bytes();
  entry->decoder = std::move(decoder);
  for (auto it = entries_.rbegin(); it != entries_.rend() && decoder_bytes_ > decoder_bytes_max_; ++it)
    TakeDecoder(*it);
}

std::optional<intake::BatchDecoder> SessionMemory::TakeDecoder(Entry& entry) {
  if (entry.decoder) decoder_bytes_ -= entry.decoder->memory_bytes();
  return std::exchange(entry.decoder, std::nullopt);
}

void SessionMemory::ForgetDictionary(Entry& entry) {
  TakeDecoder(entry);
  entry.dictionary_held = false;
  entry.generation = entry.refused_generation = 0;
  entry.have = {};
  entry.executables.clear();
}

}  // namespace tributary::ingest
