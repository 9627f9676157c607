#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "base/status.h"

// Errors (InvalidArgument) that decoders return for malformed messages.

namespace tributary::intake {

inline absl::Status Malformed(std::string_view what) { return Error(absl::StatusCode::kInvalidArgument, what); }
inline absl::Status Truncated(std::string_view column) {
  return Malformed(fmt::format("column {} has a wrong length or value", column));
}
inline absl::Status BadReference(std::string_view what, uint64_t value) {
  return Malformed(fmt::format("{} {} is not defined", what, value));
}

}  // namespace tributary::intake
