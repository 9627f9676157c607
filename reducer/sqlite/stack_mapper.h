#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/sqlite/day_tries.h"
#include "reducer/sqlite/definition_tables.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/session_table.h"
#include "reducer/store/trie_share.h"

namespace tributary::store {

// Maps the stacks of sessions to nodes of the tries of days, and adds the nodes that a trie does not have. A stack that
// was mapped before costs one look-up in a table of its session. Use it inside the writer's transaction, on the
// writer's thread.
class StackMapper {
 public:
  // All borrowed objects must outlive the object.
  StackMapper(DefinitionTables& definitions, DayTries& tries, NodeLedger& ledger)
      : definitions_(definitions), tries_(tries), ledger_(ledger) {}

  // Returns the trie's node for the stack. If the trie has no room for a new node, returns the stack's deepest node
  // that the trie already contains.
  absl::StatusOr<MappedNode> Map(Session& session, NodeRef ref, Day day);

  uint64_t steps() const { return steps_; }  // nodes of sessions that were walked, as a measure of work

 private:
  DefinitionTables& definitions_;
  DayTries& tries_;
  NodeLedger& ledger_;
  uint64_t steps_ = 0;
};

}  // namespace tributary::store
