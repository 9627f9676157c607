#include "reducer/sqlite/stack_mapper.h"

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace tributary::store {

absl::StatusOr<MappedNode> StackMapper::Map(Session& session, NodeRef ref, Day day) {
  SessionDictionary& dictionary = *session.dictionary;
  SessionDictionary::DayIds& ids = dictionary.IdsOfDay(day);
  if (ref.value == 0 || ids.nodes[ref.value] != 0) return MappedNode{NodeNo{ids.nodes[ref.value]}};
  ASSIGN_OR_RETURN(DayTrie * trie, tries_.Find(day));
  std::vector<NodeRef> unmapped;
  for (NodeRef at = ref; at.value != 0 && ids.nodes[at.value] == 0; at = dictionary.node(at).parent) {
    unmapped.push_back(at);
  }
  steps_ += unmapped.size();
  const size_t nodes_before = trie->node_count();
  const absl::Cleanup charge = [&] { ledger_.AddTrieNodes(day, session.machine, trie->node_count() - nodes_before); };
  uint32_t parent = ids.nodes[dictionary.node(unmapped.back()).parent.value];
  for (auto it = unmapped.rbegin(); it != unmapped.rend(); ++it) {
    const FrameRef frame_ref = dictionary.node(*it).frame;
    uint32_t& frame = ids.frames[frame_ref.value];
    if (frame == 0 && frame_ref.value != 0) {
      const Frame& raw = dictionary.frame(frame_ref);
      ASSIGN_OR_RETURN(uint32_t executable, definitions_.Executable(dictionary, raw.executable, day));
      FrameRow row{raw.kind, raw.is_caller, ExecutableNo{executable}, raw.address, raw.position, {}};
      if (raw.name.value != 0) {
        ASSIGN_OR_RETURN(row.name.value, definitions_.String(dictionary, raw.name, day));
      }
      frame = trie->InternFrame(row, session.machine);
    }
    // No node has a frame that the trie does not contain. Number 0 would stand for a node without a frame.
    const bool has_frame = frame != 0 || frame_ref.value == 0;
    const uint32_t node = has_frame ? trie->InternNode(parent, frame, session.machine) : 0;
    if (node == 0) return MappedNode{NodeNo{parent}, trie->full() ? TrieCut::kFull : TrieCut::kShare};
    ids.nodes[it->value] = parent = node;
  }
  return MappedNode{NodeNo{parent}};
}

}  // namespace tributary::store
