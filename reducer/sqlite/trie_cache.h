#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "reducer/sqlite/growing_trie.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Caches the tries that readers have loaded. All readers of a store share the cache, so a query reads only the pieces
// that were committed since another query loaded the trie. Thread-safe.
class TrieCache {
 public:
  // If retention deletes a day and later samples of this day arrive, the new trie has another first_piece and so
  // another key. Other changes of a day leave its first piece as it is.
  struct Key {
    uint32_t shard = 0;
    Day day;
    int64_t first_piece = 0;
    int64_t newest_gap = 0;   // with another gap, later nodes may have other numbers
    uint64_t generation = 0;  // of the executables' numbers in frames
    friend bool operator==(const Key&, const Key&) = default;
  };

  explicit TrieCache(size_t nodes_max) : nodes_max_(nodes_max) {}

  // Returns the trie with this key, which is not loaded if it is new.
  std::shared_ptr<GrowingTrie> FindOrAdd(const Key& key);
  // Forgets the trie, unless the key has another one meanwhile.
  void Remove(const Key& key, const GrowingTrie& trie);
  // Forgets the tries that were not used for the longest time, until the others have at most nodes_max nodes. Call it
  // after a trie has grown.
  void Trim();

 private:
  struct Entry {
    Key key;
    std::shared_ptr<GrowingTrie> trie;
  };

  const size_t nodes_max_;  // limit of all cached tries; the trie used last always stays
  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; most recently used first
};

}  // namespace tributary::store
