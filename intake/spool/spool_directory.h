#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "intake/spool/spool_storage.h"

namespace tributary::intake {

// Makes the directory if need be, for its owner alone. FailedPrecondition: another process holds its lock;
// PermissionDenied, InvalidArgument: one sentence that says what to do. `DIR/segment-….trs` files are the spool's.
absl::StatusOr<std::unique_ptr<SpoolStorage>> OpenSpoolDirectory(const std::string& path);

}  // namespace tributary::intake
