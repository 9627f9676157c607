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

// The days' tries that readers loaded, shared by all readers of a Store: a query reads only the pieces that were
// committed since the query before it. Snapshots are immutable; a longer one replaces a shorter one. Any thread.
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
    // What was committed since, if readers needed parts only. To extend the trie itself means to copy all of it.
    std::shared_ptr<const TrieTail> tail;  // nullptr: nothing
    int64_t last_tail_piece = 0;

    int64_t newest() const { return std::max(last_piece, last_tail_piece); }
  };

  explicit TrieCache(size_t nodes_max) : nodes_max_(nodes_max) {}

  // An empty Snapshot when there is none.
  Snapshot Find(const Key& key);
  // Kept unless a newer one is there already.
  void Put(const Key& key, const Snapshot& snapshot);

 private:
  struct Entry {
    Key key;
    Snapshot snapshot;
  };

  const size_t nodes_max_;  // of all tries kept; the one used last always is
  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; most recently used first
};

}  // namespace tributary::store
