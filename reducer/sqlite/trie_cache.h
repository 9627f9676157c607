#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <tuple>

#include "reducer/store/store.h"
#include "reducer/store/trie.h"

namespace tributary::store {

// Caches the tries that readers have loaded. All readers of a store share the cache, so a query reads only the pieces
// that were committed since another query loaded the trie. Snapshots are immutable. A snapshot with more pieces
// replaces one with fewer. The cache may be used on any thread.
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
  struct Snapshot {
    std::shared_ptr<const Trie> trie;
    int64_t last_piece = 0;  // the newest piece in it
    // The frames and nodes of the pieces after last_piece. LoadTriePart stores them here, because adding them to `trie`
    // would copy the whole trie.
    std::shared_ptr<const TrieTail> tail;  // nullptr: nothing
    int64_t last_tail_piece = 0;

    int64_t newest() const { return std::max(last_piece, last_tail_piece); }
  };

  explicit TrieCache(size_t nodes_max) : nodes_max_(nodes_max) {}

  // Returns a Snapshot without a trie if the cache does not contain the key.
  Snapshot Find(const Key& key);
  // Stores the snapshot, unless the cache already has a newer one for the key.
  void Put(const Key& key, const Snapshot& snapshot);

 private:
  struct Entry {
    Key key;
    Snapshot snapshot;
  };

  const size_t nodes_max_;  // limit of all cached tries; the trie used last always stays
  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; most recently used first
};

}  // namespace tributary::store
