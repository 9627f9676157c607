#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/trie_pieces.h"
#include "reducer/sqlite/trie_shares.h"
#include "reducer/store/store.h"

namespace tributary::store {

// The writer's copy of one day's trie. It interns frames and nodes, and remembers which of them are not yet in a
// committed piece. Memory: a node takes 8 bytes plus about 8 for its hash slot. A frame takes 24 bytes plus its hash
// slot. Use it on the writer's thread.
class DayTrie {
 public:
  DayTrie(Day day, TrieLimits limits);
  DayTrie(const DayTrie&) = delete;
  DayTrie& operator=(const DayTrie&) = delete;

  Day day() const { return day_; }

  // Appends a piece that an earlier transaction has committed. The caller must append a day's pieces in the order of
  // their commits, before it interns frames or nodes.
  absl::Status AppendCommitted(std::string_view piece);

  // Takes the place of damaged pieces (TrieSink::Fill). New stacks never use the placeholders.
  void AppendGap(const TrieEnds& to, StringId name);
  TrieEnds ends() const { return {trie_.parents.size(), trie_.frame_rows.size()}; }

  // Return the id of the equal frame or node if the trie has it. Otherwise add the frame or node and return its new id.
  // Return 0 if the trie is full, or if the machine has used up its share: the caller must then cut the stack at
  // `parent`. `machine`: the machine that sends the stack. A node counts for the machine that adds it.
  uint32_t InternFrame(const FrameRow& row, int64_t machine);
  uint32_t InternNode(uint32_t parent, uint32_t frame, int64_t machine);

  bool has_new() const;
  std::string EncodeNew() const;
  void MarkCommitted();
  void Rollback();  // to the last MarkCommitted

  size_t node_count() const { return trie_.parents.size(); }
  bool full() const { return node_count() >= limits_.nodes_max; }
  TrieShares& shares() { return shares_; }

 private:
  static uint64_t NodeKey(uint32_t parent, uint32_t frame) { return uint64_t{parent} << 32 | frame; }
  uint64_t KeyOf(uint32_t node) const { return NodeKey(trie_.parents[node].value, trie_.frames[node]); }

  // The hash sets contain only ids. To hash or compare ids, the structs below read the nodes or frames from
  // `owner->trie_`.
  struct NodeHash {
    using is_transparent = void;
    const DayTrie* owner;
    size_t operator()(uint32_t node) const { return absl::Hash<uint64_t>{}(owner->KeyOf(node)); }
    size_t operator()(uint64_t key) const { return absl::Hash<uint64_t>{}(key); }
  };
  struct NodeEqual {
    using is_transparent = void;
    const DayTrie* owner;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t a, uint64_t key) const { return owner->KeyOf(a) == key; }
    bool operator()(uint64_t key, uint32_t a) const { return owner->KeyOf(a) == key; }
  };
  struct FrameHash {
    using is_transparent = void;
    const DayTrie* owner;
    size_t operator()(uint32_t frame) const { return (*this)(owner->trie_.frame_rows[frame]); }
    size_t operator()(const FrameRow& row) const {
      // Hashes only three words, because each frame that a session defines is looked up here.
      return absl::HashOf(
          uint64_t{row.executable.value} << 32 | uint64_t{static_cast<uint8_t>(row.kind)} << 1 | row.is_caller,
          row.address, uint64_t{row.position} << 32 | row.name.value);
    }
  };
  struct FrameEqual {
    using is_transparent = void;
    const DayTrie* owner;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t a, const FrameRow& b) const { return owner->trie_.frame_rows[a] == b; }
    bool operator()(const FrameRow& a, uint32_t b) const { return a == owner->trie_.frame_rows[b]; }
  };

  Day day_;
  TrieLimits limits_;
  TrieShares shares_;
  Trie trie_ = EmptyTrie();
  size_t committed_nodes_ = 1, committed_frames_ = 1;
  absl::flat_hash_set<uint32_t, NodeHash, NodeEqual> node_ids_;
  absl::flat_hash_set<uint32_t, FrameHash, FrameEqual> frame_ids_;
};

class DayTrieSink final : public TrieSink {
 public:
  explicit DayTrieSink(DayTrie& trie) : trie_(trie) {}
  TrieEnds ends() const override { return trie_.ends(); }
  absl::Status Append(std::string_view raw_piece) override { return trie_.AppendCommitted(raw_piece); }
  void Fill(const TrieEnds& to, StringId name) override { trie_.AppendGap(to, name); }

 private:
  DayTrie& trie_;
};

}  // namespace tributary::store
