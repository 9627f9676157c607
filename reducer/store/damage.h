#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace tributary::store {

// What the user can do about a damaged file whose data cannot be made again.
constexpr std::string_view kRestoreAdvice =
    "restore the file from a backup, or stop the reducer and move the file away: the reducer then creates an empty "
    "file";

// If the status is DataLoss, appends advice to its message: what the user can do about the damaged file, which the
// message already names. Returns every other status unchanged.
absl::Status AdviseOnDamage(const absl::Status& status);

// Returns true if an operation that failed with this status may work later although the data stay as they are: the disk
// is full or there is no memory (ResourceExhausted), another connection holds the lock (Unavailable), or the file
// cannot be opened or written (PermissionDenied: a mount that became read-only). I/O errors (Aborted) are not among
// them: a broken sector stays broken, a cable does not.
bool MayPass(const absl::Status& status);

}  // namespace tributary::store
