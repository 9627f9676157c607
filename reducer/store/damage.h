#pragma once

#include "absl/status/status.h"

namespace tributary::store {

// Puts behind the message of a DataLoss what a person can do about the damaged file that the message names. Every other
// status stays as it is.
absl::Status AdviseOnDamage(const absl::Status& status);

}  // namespace tributary::store
