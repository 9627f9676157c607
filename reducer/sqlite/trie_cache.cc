#include "reducer/sqlite/trie_cache.h"

#include <algorithm>

namespace tributary::store {

TrieCache::Snapshot TrieCache::Find(const Key& key) {
  std::lock_guard lock(mutex_);
  auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  if (it == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, it);
  return entries_.front().snapshot;
}

void TrieCache::Put(const Key& key, const Snapshot& snapshot) {
  std::lock_guard lock(mutex_);
  auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  if (it == entries_.end()) {
    entries_.push_front(Entry{key, snapshot});
  } else {
    if (it->snapshot.newest() <= snapshot.newest()) it->snapshot = snapshot;
    entries_.splice(entries_.begin(), entries_, it);
  }
  size_t nodes = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    nodes += entry->snapshot.trie->parents.size();
    auto next = std::next(entry);
    if (entry != entries_.begin() && nodes > nodes_max_) entries_.erase(entry);
    entry = next;
  }
}

}  // namespace tributary::store
