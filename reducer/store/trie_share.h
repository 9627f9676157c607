#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reducer/store/store.h"

namespace tributary::store {

// Limits of one day's trie in one shard. They are the same for every kind of store.
struct TrieLimits {
  uint32_t nodes_max = StoreOptions().nodes_per_day_max;
  uint32_t machine_nodes_min = StoreOptions().machine_nodes_per_day_min;
};

// Returns how many nodes a machine may add to a day's trie that has `used` nodes now: a quarter of the free nodes, but
// at least machine_nodes_min. Only the machine that sends a stack first adds its nodes. The share shrinks while the
// trie fills, so a machine gets less than a quarter in the end: a machine that adds nodes without end gets a fifth of
// an empty trie, the next one a fifth of the rest, and so on. With the default limits, a fifth is 1.68 million nodes.
// The rest, 6.71 million, is enough for 102 machines with 65,536 nodes each. If the share were a quarter of the nodes
// that were free in the morning, it would be enough for 96.
constexpr uint32_t TrieShare(const TrieLimits& limits, size_t used) {
  const auto free = static_cast<uint32_t>(limits.nodes_max - std::min<size_t>(used, limits.nodes_max));
  return std::max(limits.machine_nodes_min, free / 4);
}

// Why the innermost frames of a stack were not stored. ReasonOf returns the reason for Refusals.
enum class TrieCut : uint8_t {
  kNone,   // the stack is whole
  kShare,  // the machine has used up its share of the day's trie
  kFull,   // the trie is full
};

constexpr std::string_view ReasonOf(TrieCut cut) { return cut == TrieCut::kFull ? "trie_full" : "trie_quota"; }

// A node of a session in a day's trie: the stack's last frame that is stored.
struct MappedNode {
  NodeNo node;
  TrieCut cut = TrieCut::kNone;
};

}  // namespace tributary::store
