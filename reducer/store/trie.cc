#include "reducer/store/trie.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tributary::store {
namespace {

class Cutter {
 public:
  explicit Cutter(const TrieView& trie) : trie_(trie) {
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
  FrameRow RowOf(uint32_t frame) const {
    return frame < trie_.frame_rows.size() ? trie_.frame_rows[frame] : FrameRow{};
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
      if (at >= trie_.parents.size()) break;
      const uint32_t parent = trie_.parents[at].value;
      path_.emplace_back(at, trie_.frames[at]);
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

  const TrieView& trie_;
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

TrieView EmptyTrieView() { return TrieView(std::make_shared<const Trie>(EmptyTrie())); }

void AppendTrie(const Trie& added, Trie* trie) {
  const auto append = [](const auto& more, auto& to) { to.insert(to.end(), more.begin(), more.end()); };
  append(added.parents, trie->parents);
  append(added.frames, trie->frames);
  append(added.frame_rows, trie->frame_rows);
}

TriePart CutTrie(const TrieView& trie, std::span<const NodeNo> leaves) { return Cutter(trie).Cut(leaves); }

}  // namespace tributary::store
