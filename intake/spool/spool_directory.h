#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "intake/spool/spool_storage.h"

namespace tributary::intake {

// Makes the directory if it does not exist, accessible only to its owner. FailedPrecondition: another process holds its
// lock. PermissionDenied, InvalidArgument: the directory cannot be used; the message says what to do. The spool owns
// the files `DIR/segment-….trs`.
absl::StatusOr<std::unique_ptr<SpoolStorage>> OpenSpoolDirectory(const std::string& path);

}  // namespace tributary::intake
