#include "reducer/store/trie.h"

namespace tributary::store {

Trie EmptyTrie() {
  Trie trie;
  trie.parents.push_back(NodeNo{0});
  trie.frames.push_back(0);
  trie.frame_rows.emplace_back();
  return trie;
}

}  // namespace tributary::store
