#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "profile/executable_id.h"
#include "reducer/symbolizer/symbol_files.h"
#include "reducer/symbolizer/table_notes.h"

namespace tributary {

struct TableLimits {
  uint64_t disk_bytes_max = 0;  // of all tables
  // The share of each node is at least this (TablesToEvict).
  uint64_t node_share_bytes_min = 0;
  UnixNs used_since;  // tables that were last used earlier go first
};

// A table that needs space.
struct NewTable {
  ExecutableId id;
  uint64_t disk_bytes = 0;
  int rank = 0;          // SymbolOriginRank
  SymbolWitness sender;  // no node_id: no node sent it, or the node is unknown
};

// The bytes of a table file on disk at most: its size and one page.
uint64_t TableDiskBytes(uint64_t stored_bytes);

// Chooses the tables to delete when the directory is full. Returns nullopt if `fresh` has no space, because the other
// tables are more trusted. `fresh` null: there is no new table, and any table may be deleted.
//
// Tables that were not used since `used_since` are deleted first, however trusted they are: otherwise, the tables of
// old builds would leave no space for new ones.
//
// Of the others, a table is never deleted for a less trusted one. The least trusted tables are deleted first, and of
// equal rank the least recently used ones. A table that one node alone has sent is charged to this node. Nodes of one
// peer count as one node, if their peer is known. A node over its share loses its own tables first when it sends
// another one, and its tables are the first ones to go when another table needs space. The share is `disk_bytes_max`
// divided by the number of such nodes, but at least `node_share_bytes_min`. So a node pushes out at most its share of
// other nodes' tables, or one table that is larger than the share.
std::optional<std::vector<SymbolFiles::Row>> TablesToEvict(std::vector<SymbolFiles::Row> stored,
                                                           const TableLimits& limits, const NewTable* fresh);

}  // namespace tributary
