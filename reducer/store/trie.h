#pragma once

#include <span>

#include "reducer/store/store.h"

namespace tributary::store {

Trie EmptyTrie();  // the root, and the row of no frame

// Nodes and frames behind those of another trie: parents, and frames of nodes, are numbers of both together.
struct TrieTail {
  size_t first_node = 0, first_frame = 0;  // the numbers of its first; the sizes of what it follows
  Trie added;
};

void AppendTail(const TrieTail& tail, Trie* trie);  // `trie` is what it follows

// The leaves and their ancestors, of a trie and what follows it. Costs a hash look-up a node of the part, whatever the
// size of the whole. Of a node with a number that the trie does not have, or a parent that is no older, nothing below
// is looked at: what was damaged must not harm who reads it.
TriePart CutTrie(const Trie& trie, const TrieTail& tail, std::span<const NodeNo> leaves);

}  // namespace tributary::store
