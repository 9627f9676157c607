#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reducer/store/sqlite.h"

namespace tributary {

// A connection to DIR/rollouts.db, in which rollouts are (rollout_log.h), and what is known of services' versions
// (service_state_db.h). Each has its own; no commit waits for the disk, so that neither keeps the other waiting.
// A damaged file is set aside (OpenOrBeginAnew). FailedPrecondition: it is a newer release's.
absl::StatusOr<store::Database> OpenRolloutsDb(const std::string& path);

}  // namespace tributary
