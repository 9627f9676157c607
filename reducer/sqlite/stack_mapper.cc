#include "reducer/sqlite/stack_mapper.h"

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace tributary::store {

void StackMapper::Start(Session& session, Day day) {
  session_ = &session;
  day_ = day;
  ids_ = &session.dictionary->IdsOfDay(day);
  cut_.clear();
}

absl::StatusOr<MappedNode> StackMapper::MapNew(NodeRef ref) {
  const SessionDictionary& dictionary = *session_->dictionary;
  unmapped_.clear();
  NodeRef at = ref;
  for (; at.value != 0 && ids_->nodes[at.value] == 0; at = dictionary.node(at).parent) {
    if (!cut_.empty()) {
      if (const auto known = cut_.find(at); known != cut_.end()) return RememberCut(known->second);
    }
    unmapped_.push_back(at);
    ++steps_;
  }
  ASSIGN_OR_RETURN(DayTrie * trie, tries_.Find(day_));
  const size_t nodes_before = trie->node_count();
  const absl::Cleanup charge = [&] {
    ledger_.AddTrieNodes(day_, session_->machine, trie->node_count() - nodes_before);
  };
  uint32_t parent = ids_->nodes[at.value];
  for (; !unmapped_.empty(); unmapped_.pop_back()) {
    ASSIGN_OR_RETURN(const uint32_t node, AddNode(*trie, unmapped_.back(), parent));
    if (node == 0) return RememberCut({NodeNo{parent}, trie->full() ? TrieCut::kFull : TrieCut::kShare});
    ids_->nodes[unmapped_.back().value] = parent = node;
  }
  return MappedNode{NodeNo{parent}};
}

absl::StatusOr<uint32_t> StackMapper::AddNode(DayTrie& trie, NodeRef ref, uint32_t parent) {
  SessionDictionary& dictionary = *session_->dictionary;
  const FrameRef frame_ref = dictionary.node(ref).frame;
  uint32_t& frame = ids_->frames[frame_ref.value];
  if (frame == 0 && frame_ref.value != 0) {
    const Frame& raw = dictionary.frame(frame_ref);
    ASSIGN_OR_RETURN(uint32_t executable, definitions_.Executable(dictionary, raw.executable, day_));
    FrameRow row{raw.kind, raw.is_caller, ExecutableNo{executable}, raw.address, raw.position, {}};
    if (raw.name.value != 0) {
      ASSIGN_OR_RETURN(row.name.value, definitions_.String(dictionary, raw.name, day_));
    }
    frame = trie.InternFrame(row, session_->machine);
    // No node has a frame that the trie does not contain. Number 0 would stand for a node without a frame.
    if (frame == 0) return 0u;
  }
  return trie.InternNode(parent, frame, session_->machine);
}

// The nodes that could not be mapped are below `mapped`.
MappedNode StackMapper::RememberCut(MappedNode mapped) {
  for (const NodeRef ref : unmapped_) cut_.emplace(ref, mapped);
  return mapped;
}

}  // namespace tributary::store
