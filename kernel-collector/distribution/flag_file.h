#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "kernel-collector/distribution/config.h"

namespace tributary {

// Reads a configuration file of the OpenTelemetry eBPF profiler itself (its flag -config): each line has the name of a
// flag, a blank and a value. A flag without a value is true. A "#" at the start of a line, or after a blank, begins a
// comment. If a flag stands twice, the last line counts.
//
// Returns nullopt if the text is not such a file: a line cannot be a flag, or no line has a flag of the profiler. Other
// flags give a warning, because the profiler ignores them. Returns InvalidArgument for wrong values, with line and
// column. Ignores lines after the 1,000th flag. The first warning says so. There are at most 64 warnings.
absl::StatusOr<std::optional<DistributionConfig>> ReadFlagFile(std::string_view text);

}  // namespace tributary
