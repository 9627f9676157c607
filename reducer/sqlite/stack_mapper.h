#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/day_tries.h"
#include "reducer/sqlite/definition_tables.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/session_table.h"
#include "reducer/store/session_dictionary.h"
#include "reducer/store/trie_share.h"

namespace tributary::store {

// Maps the stacks of sessions to nodes of the tries of days, and adds the nodes that a trie does not have. A stack that
// was mapped before costs one look-up in a table of its session. A new stack is walked up to its first node that is
// mapped. So each node of a session is walked once per day, as long as the session is in memory and uses the day
// (SessionDictionary::IdsOfDay).
//
// If the trie has no room for a stack, the stack is cut. Another machine may add the missing nodes later, so the
// session does not remember this result. But after the first cut, no node is added to the trie until the next Start:
// all samples come from one machine, which has used up its share. Until then, the cut nodes are remembered, so each of
// them is walked once after each Start. They take about 32 bytes each.
//
// Use it inside the writer's transaction, on the writer's thread.
class StackMapper {
 public:
  // All borrowed objects must outlive the object.
  StackMapper(DefinitionTables& definitions, DayTries& tries, NodeLedger& ledger)
      : definitions_(definitions), tries_(tries), ledger_(ledger) {}

  // Sets the session and the day of the next stacks. Call it for each batch and each of its days, after the session has
  // taken the batch's definitions.
  void Start(Session& session, Day day);

  // Returns the trie's node for the stack. If the trie has no room for a new node, returns the stack's deepest node
  // that the trie already contains.
  absl::StatusOr<MappedNode> Map(NodeRef ref) {
    const uint32_t node = ids_->nodes[ref.value];
    if (node != 0 || ref.value == 0) return MappedNode{NodeNo{node}};
    return MapNew(ref);
  }

  uint64_t steps() const { return steps_; }  // nodes of sessions that were walked, as a measure of work

 private:
  absl::StatusOr<MappedNode> MapNew(NodeRef ref);
  // Returns 0 if the trie has no room for the frame or the node.
  absl::StatusOr<uint32_t> AddNode(DayTrie& trie, NodeRef ref, uint32_t parent);
  MappedNode RememberCut(MappedNode mapped);

  DefinitionTables& definitions_;
  DayTries& tries_;
  NodeLedger& ledger_;
  Session* session_ = nullptr;
  Day day_;
  SessionDictionary::DayIds* ids_ = nullptr;  // of `session_`
  std::vector<NodeRef> unmapped_;             // of the stack that is mapped now: the outermost node is last
  absl::flat_hash_map<NodeRef, MappedNode> cut_;
  uint64_t steps_ = 0;
};

}  // namespace tributary::store
