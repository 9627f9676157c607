#pragma once

#include "absl/status/status.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/finding.h"

namespace tributary::store {

// Checks the contents of a shard's file, in one read transaction: every piece decodes; minutes, machines, types, nodes,
// processes and threads that pieces refer to exist; the numbers of samples agree with the totals and with the minute
// sums. Also checks the numbers about machines (accounting_check.h). The file must have the current schema. Passes each
// damaged row to `visit`, but at most kFindingsOfTableMax rows of each table. Needs the memory of the largest trie of a
// day, and about 50 bytes for each minute, machine and type.
//
// Errors: those of reading the file. Damage is no error.
absl::Status CheckShard(Database& database, const FindingVisitor& visit);

constexpr int kFindingsOfTableMax = 20;

}  // namespace tributary::store
