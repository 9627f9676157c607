#pragma once

#include "absl/status/status.h"

namespace tributary::store {

// Appends advice to the message of a DataLoss status: what a person can do about the damaged file that the message
// names. Returns every other status unchanged.
absl::Status AdviseOnDamage(const absl::Status& status);

}  // namespace tributary::store
