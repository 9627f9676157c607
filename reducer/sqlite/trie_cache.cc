#include "reducer/sqlite/trie_cache.h"

#include <algorithm>
#include <iterator>

namespace tributary::store {

std::shared_ptr<GrowingTrie> TrieCache::FindOrAdd(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) {
    entries_.push_front({key, std::make_shared<GrowingTrie>()});
  } else {
    entries_.splice(entries_.begin(), entries_, found);
  }
  return entries_.front().trie;
}

void TrieCache::Remove(const Key& key, const GrowingTrie& trie) {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.key == key && entry.trie.get() == &trie; });
}

void TrieCache::Trim() {
  const std::lock_guard lock(mutex_);
  size_t nodes = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    nodes += entry->trie->Latest().view.parents.size() + 1;  // an entry without nodes takes memory, too
    const auto next = std::next(entry);
    if (entry != entries_.begin() && nodes > nodes_max_) entries_.erase(entry);
    entry = next;
  }
}

}  // namespace tributary::store
