#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary {

// Opens a connection to DIR/rollouts.db. The file holds rollouts (sqlite_rollout_store.h) and the known versions of
// services (sqlite_service_state_store.h). Each of these stores has its own connection. No commit waits for the disk,
// so neither store keeps the other waiting. Returns the database's errors.
absl::StatusOr<store::Database> OpenRolloutsDb(const std::string& directory);

}  // namespace tributary
