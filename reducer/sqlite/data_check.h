#pragma once

#include <string>

#include "absl/status/status.h"
#include "reducer/store/finding.h"

namespace tributary::store {

// Checks the databases of a directory (docs/store.md) and changes nothing in it: the structure of all pages, the
// version of each schema, and the contents of each shard (shard_check.h). Each file is checked as it was at one moment,
// so a reducer may use the directory meanwhile. Its write-ahead logs then grow until the check of a file ends.
//
// Returns NotFound if the directory does not exist or has no store.db, and PermissionDenied if it may not be read.
absl::Status CheckSqliteDirectory(const std::string& directory, const FindingVisitor& visit);

}  // namespace tributary::store
