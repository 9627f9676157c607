#include "reducer/sqlite/day_trie.h"

namespace tributary::store {

DayTrie::DayTrie(Day day, TrieLimits limits)
    : day_(day),
      limits_(limits),
      shares_(limits),
      node_ids_(0, NodeHash{this}, NodeEqual{this}),
      frame_ids_(0, FrameHash{this}, FrameEqual{this}) {
  frame_ids_.insert(0u);
}

absl::Status DayTrie::AppendCommitted(std::string_view piece) {
  absl::Status appended = AppendWholePiece(piece, {}, &trie_);
  if (!appended.ok()) return appended;
  for (size_t i = committed_frames_; i < trie_.frame_rows.size(); ++i) frame_ids_.insert(static_cast<uint32_t>(i));
  for (size_t i = committed_nodes_; i < trie_.parents.size(); ++i) node_ids_.insert(static_cast<uint32_t>(i));
  MarkCommitted();
  return absl::OkStatus();
}

void DayTrie::AppendGap(const TrieEnds& to, StringId name) {
  AppendPlaceholders({}, to, name, &trie_);
  MarkCommitted();
}

uint32_t DayTrie::InternFrame(const FrameRow& row, int64_t machine) {
  if (auto it = frame_ids_.find(row); it != frame_ids_.end()) return *it;
  if (!shares_.HasRoom(machine, node_count())) return 0;  // no new node could use it
  auto id = static_cast<uint32_t>(trie_.frame_rows.size());
  trie_.frame_rows.push_back(row);
  frame_ids_.insert(id);
  return id;
}

uint32_t DayTrie::InternNode(uint32_t parent, uint32_t frame, int64_t machine) {
  if (auto it = node_ids_.find(NodeKey(parent, frame)); it != node_ids_.end()) return *it;
  if (!shares_.HasRoom(machine, node_count())) return 0;
  shares_.Add(machine);
  auto id = static_cast<uint32_t>(trie_.parents.size());
  trie_.parents.push_back(NodeNo{parent});
  trie_.frames.push_back(frame);
  node_ids_.insert(id);
  return id;
}

bool DayTrie::has_new() const {
  return trie_.parents.size() > committed_nodes_ || trie_.frame_rows.size() > committed_frames_;
}

std::string DayTrie::EncodeNew() const { return EncodeTriePiece(trie_, committed_nodes_, committed_frames_); }

void DayTrie::MarkCommitted() {
  committed_nodes_ = trie_.parents.size();
  committed_frames_ = trie_.frame_rows.size();
  shares_.MarkCommitted();
}

void DayTrie::Rollback() {
  for (size_t i = committed_nodes_; i < trie_.parents.size(); ++i) node_ids_.erase(static_cast<uint32_t>(i));
  for (size_t i = committed_frames_; i < trie_.frame_rows.size(); ++i) frame_ids_.erase(static_cast<uint32_t>(i));
  trie_.parents.resize(committed_nodes_);
  trie_.frames.resize(committed_nodes_);
  trie_.frame_rows.resize(committed_frames_);
  shares_.Rollback();
}

}  // namespace tributary::store
