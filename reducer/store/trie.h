#pragma once

#include <span>

#include "reducer/store/store.h"

namespace tributary::store {

Trie EmptyTrie();  // the root, and the row of no frame

// Nodes and frames that follow the nodes and frames of another trie. Parents and frames are numbered across both tries.
struct TrieTail {
  size_t first_node = 0, first_frame = 0;  // the numbers of its first ones: the sizes of the trie that it follows
  Trie added;
};

void AppendTail(const TrieTail& tail, Trie* trie);  // `trie`: the trie that `tail` follows

// Returns the leaves and their ancestors, from a trie and its tail. Costs one hash look-up per node of the part,
// whatever the size of the trie. A damaged trie does no harm: a parent that is not older than its child counts as the
// root, and so does a leaf that does not exist.
TriePart CutTrie(const Trie& trie, const TrieTail& tail, std::span<const NodeNo> leaves);

}  // namespace tributary::store
