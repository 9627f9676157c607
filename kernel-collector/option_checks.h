#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Checks of the values of options. Each returns InvalidArgument unless the value is in the range, which `range`
// describes for users: "1s to 7d".

namespace tributary {

absl::Status CheckDuration(std::string_view value, int64_t min_ns, int64_t max_ns, std::string_view range);
absl::Status CheckBytes(std::string_view value, int64_t min, int64_t max, std::string_view range);

}  // namespace tributary
