#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "reducer/store/store.h"
#include "reducer/store/trie.h"

namespace tributary::store {

// One day's trie in memory, which grows while readers use views of it. Nodes are only added at the end, so a view stays
// valid and does not change. Adding copies the trie only if its columns have no room: then they get a quarter more, so
// the cost per node does not depend on how often nodes are added. Thread-safe.
class GrowingTrie {
 public:
  static constexpr int64_t kNotLoaded = -1;

  struct State {
    TrieView view;
    int64_t last_piece = kNotLoaded;  // the newest piece in `view`
  };

  // Only one caller at a time may append. It holds this mutex from its call of Latest to its call of Append, so that
  // others need not decode the same pieces.
  std::timed_mutex& appending() { return appending_; }

  State Latest() const;
  // Sets the columns of a trie that is not loaded.
  void Load(Trie trie, int64_t last_piece);
  // Appends the nodes and frames after those of Latest().
  void Append(const Trie& added, int64_t last_piece);

 private:
  std::timed_mutex appending_;
  mutable std::mutex mutex_;
  // The next are guarded by mutex_. Views share `columns_`, and read only the elements from before they were made.
  std::shared_ptr<Trie> columns_ = std::make_shared<Trie>();
  int64_t last_piece_ = kNotLoaded;
};

}  // namespace tributary::store
