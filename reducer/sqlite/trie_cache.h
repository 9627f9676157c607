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

// The days' tries that readers have loaded. All readers of a Store share them: a query reads only the pieces that were
// committed after the previous query. Snapshots are immutable; a longer snapshot replaces a shorter one. Use the cache
// on any thread.
class TrieCache {
 public:
  // A day that was removed and came again starts with another piece.
  struct Key {
    uint32_t shard = 0;
    Day day;
    int64_t first_piece = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Snapshot {
    std::shared_ptr<const Trie> trie;
    int64_t last_piece = 0;  // the newest piece in it
    // The nodes committed since then, if readers needed only parts. Extending the trie itself would copy all of it.
    std::shared_ptr<const TrieTail> tail;  // nullptr: nothing
    int64_t last_tail_piece = 0;

    int64_t newest() const { return std::max(last_piece, last_tail_piece); }
  };

  explicit TrieCache(size_t nodes_max) : nodes_max_(nodes_max) {}

  // Returns an empty Snapshot if the cache does not have the key.
  Snapshot Find(const Key& key);
  // Keeps the snapshot unless the cache already has a newer one.
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
