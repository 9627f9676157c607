#pragma once

#include <span>

#include "reducer/store/store.h"

namespace tributary::store {

Trie EmptyTrie();  // the root, and the row of no frame

// Nodes and frames that follow those of another trie. Parents, and frames of nodes, are numbers of both together.
struct TrieTail {
  size_t first_node = 0, first_frame = 0;  // the numbers of its first; the sizes of what it follows
  Trie added;
};

void AppendTail(const TrieTail& tail, Trie* trie);  // to the trie that it follows

// Returns the leaves and their ancestors, of a trie and its tail. Costs a hash look-up for each node of the part,
// whatever the size of the whole. A damaged trie does no harm: a parent that is not older than its child counts as the
// root, and so does a leaf that is not there.
TriePart CutTrie(const Trie& trie, const TrieTail& tail, std::span<const NodeNo> leaves);

}  // namespace tributary::store
