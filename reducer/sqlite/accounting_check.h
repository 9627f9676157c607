#pragma once

#include <cstdint>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/finding.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Checks what a shard's file records about the data of each machine: the bytes of a day (node_day), and the nodes that
// a machine has added to a trie (trie_share). Wrong numbers change what expires first and what a machine may still
// store, but no stored data. So all findings are warnings.
//
//   - No number is negative, each day is possible, and each machine exists, or is 0.
//   - node_day.data_bytes is the sum over the rows of samples, sums and events (NodeLedger::BytesOf). An earlier
//   release
//     kept no such table. Its days have a row of machine 0, or none. On these days and before, the rows may take more
//     bytes than recorded. So a missing row is no finding.
//   - All machines together have added at most as many nodes to a trie as it has. The pieces of a trie do not contain
//     the machines of their nodes, so the number of a single machine cannot be checked.
//
// `nodes_of`: the nodes of each day with a trie; UINT64_MAX: unknown. Pages that cannot be read end the check: other
// checks report them.
absl::Status CheckAccounting(Database& database, const absl::flat_hash_set<int64_t>& machines,
                             const std::map<Day, uint64_t>& nodes_of, const FindingVisitor& visit);

}  // namespace tributary::store
