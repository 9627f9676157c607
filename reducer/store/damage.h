#pragma once

#include "absl/status/status.h"

namespace tributary::store {

// If the status is DataLoss, appends advice to its message: what the user can do about the damaged file, which the
// message already names. Returns every other status unchanged.
absl::Status AdviseOnDamage(const absl::Status& status);

}  // namespace tributary::store
