#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary {

// Opens a connection to DIR/rollouts.db. The file holds rollouts (sqlite_rollout_store.h) and the known versions of
// services (sqlite_service_state_store.h). Each of these two stores has its own connection. One store rarely waits for
// the other's lock, because commits do not wait for the disk. Returns the errors of sqlite.h.
absl::StatusOr<store::Database> OpenRolloutsDb(const std::string& directory);

}  // namespace tributary
