#pragma once

#include <span>

#include "reducer/store/store.h"

namespace tributary::store {

Trie EmptyTrie();  // contains only the root, and frame row 0 (no frame)

// Nodes and frames that were added after a trie was loaded. Their numbers continue those of that trie: a parent's or
// frame's number may refer to the trie or to the tail.
struct TrieTail {
  size_t first_node = 0, first_frame = 0;  // numbers of the tail's first node and frame: the sizes of the trie
  Trie added;
};

void AppendTail(const TrieTail& tail, Trie* trie);  // `trie`: the trie that `tail` follows

// Returns the leaves and their ancestors, from a trie and its tail. The cost depends on the size of the result, not of
// the trie: about one hash look-up per node. Also safe for a damaged trie: a parent counts as the root if its number is
// not below its child's, and so does a leaf that does not exist.
TriePart CutTrie(const Trie& trie, const TrieTail& tail, std::span<const NodeNo> leaves);

}  // namespace tributary::store
