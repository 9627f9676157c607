#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary {

// A connection to DIR/rollouts.db, in which rollouts are (sqlite_rollout_store.h), and what is known of services'
// versions (sqlite_service_state_store.h). Each has its own; no commit waits for the disk, so that neither keeps the
// other waiting. Errors: the database's.
absl::StatusOr<store::Database> OpenRolloutsDb(const std::string& directory);

}  // namespace tributary
