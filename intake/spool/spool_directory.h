#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "intake/spool/spool_storage.h"

namespace tributary::intake {

// Opens the directory of a spool, and locks it. Creates it if it does not exist, accessible only to its owner.
// FailedPrecondition: another process has locked the directory. PermissionDenied or InvalidArgument: the directory
// cannot be used, and the message says what to do. The spool uses only the files `DIR/segment-….trs` and `DIR/LOCK`.
absl::StatusOr<std::unique_ptr<SpoolStorage>> OpenSpoolDirectory(const std::string& path);

}  // namespace tributary::intake
