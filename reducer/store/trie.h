#pragma once

#include <span>

#include "reducer/store/store.h"

namespace tributary::store {

Trie EmptyTrie();  // contains only the root, and frame row 0 (no frame)
TrieView EmptyTrieView();

// Nodes and frames that come after those of a trie. Their numbers continue those of that trie: a parent's or frame's
// number may refer to the trie or to the tail.
struct TrieTail {
  size_t first_node = 0, first_frame = 0;  // numbers of the tail's first node and frame: the sizes of the trie
  Trie added;
};

void AppendTrie(const Trie& added, Trie* trie);  // `added`: of a tail that follows `trie`

// Returns the leaves and their ancestors. The cost depends on the size of the result, not of
// the trie: about one hash look-up per node. Also safe for a damaged trie: a parent counts as the root if its number is
// not below its child's, and so does a leaf that does not exist.
TriePart CutTrie(const TrieView& trie, std::span<const NodeNo> leaves);

}  // namespace tributary::store
