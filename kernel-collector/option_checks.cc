#include "kernel-collector/option_checks.h"

#include <fmt/format.h>

#include "base/parse.h"
#include "base/status.h"

namespace tributary {

absl::Status CheckDuration(std::string_view value, int64_t min_ns, int64_t max_ns, std::string_view range) {
  auto ns = ParseDurationNs(value);
  if (ns.ok() && *ns >= min_ns && *ns <= max_ns) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("must be a duration of {}", range));
}

absl::Status CheckBytes(std::string_view value, int64_t min, int64_t max, std::string_view range) {
  auto bytes = ParseBytes(value);
  if (bytes.ok() && *bytes >= min && *bytes <= max) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("must be a size of {}", range));
}

}  // namespace tributary
