#include "reducer/store/trie.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tributary::store {
namespace {

class Cutter {
 public:
  Cutter(const Trie& trie, const TrieTail& tail) : trie_(trie), tail_(tail) {
    part_.trie = EmptyTrie();
    numbers_.emplace(0u, NodeNo{0});
    frames_.emplace(0u, 0u);
  }

  TriePart Cut(std::span<const NodeNo> leaves) {
    part_.nodes.reserve(leaves.size());
    for (NodeNo leaf : leaves) part_.nodes.push_back(NumberOf(leaf));
    return std::move(part_);
  }

 private:
  bool Has(uint32_t node) const {
    return node < trie_.parents.size() ||
           (node >= tail_.first_node && node - tail_.first_node < tail_.added.parents.size());
  }
  std::pair<uint32_t, uint32_t> ParentAndFrame(uint32_t node) const {
    if (node < trie_.parents.size()) return {trie_.parents[node].value, trie_.frames[node]};
    return {tail_.added.parents[node - tail_.first_node].value, tail_.added.frames[node - tail_.first_node]};
  }
  FrameRow RowOf(uint32_t frame) const {
    if (frame < trie_.frame_rows.size()) return trie_.frame_rows[frame];
    const size_t behind = frame - tail_.first_frame;
    return frame >= tail_.first_frame && behind < tail_.added.frame_rows.size() ? tail_.added.frame_rows[behind]
                                                                                : FrameRow{};
  }

  // Returns the part's number of the node. Adds the node to the part, after its ancestors, if the part lacks it.
  // Returns 0 for the root and for a node that does not exist.
  NodeNo NumberOf(NodeNo leaf) {
    path_.clear();
    uint32_t at = leaf.value;
    NodeNo number;
    for (;;) {
      if (const auto known = numbers_.find(at); known != numbers_.end()) {
        number = known->second;
        break;
      }
      if (!Has(at)) break;
      const auto [parent, frame] = ParentAndFrame(at);
      path_.emplace_back(at, frame);
      if (parent >= at) break;
      at = parent;
    }
    for (auto node = path_.rbegin(); node != path_.rend(); ++node) number = Add(node->first, number, node->second);
    return number;
  }
  NodeNo Add(uint32_t node, NodeNo parent, uint32_t frame) {
    const NodeNo number{static_cast<uint32_t>(part_.trie.parents.size())};
    const auto [index, added] = frames_.try_emplace(frame, static_cast<uint32_t>(part_.trie.frame_rows.size()));
    if (added) part_.trie.frame_rows.push_back(RowOf(frame));
    part_.trie.parents.push_back(parent);
    part_.trie.frames.push_back(index->second);
    numbers_.emplace(node, number);
    return number;
  }

  const Trie& trie_;
  const TrieTail& tail_;
  TriePart part_;
  absl::flat_hash_map<uint32_t, NodeNo> numbers_;    // of nodes
  absl::flat_hash_map<uint32_t, uint32_t> frames_;   // indices of frame rows
  std::vector<std::pair<uint32_t, uint32_t>> path_;  // nodes and their frames, from a leaf up
};

}  // namespace

Trie EmptyTrie() {
  Trie trie;
  trie.parents.push_back(NodeNo{0});
  trie.frames.push_back(0);
  trie.frame_rows.emplace_back();
  return trie;
}

void AppendTail(const TrieTail& tail, Trie* trie) {
  const auto append = [](const auto& more, auto& to) { to.insert(to.end(), more.begin(), more.end()); };
  append(tail.added.parents, trie->parents);
  append(tail.added.frames, trie->frames);
  append(tail.added.frame_rows, trie->frame_rows);
}

TriePart CutTrie(const Trie& trie, const TrieTail& tail, std::span<const NodeNo> leaves) {
  return Cutter(trie, tail).Cut(leaves);
}

}  // namespace tributary::store
