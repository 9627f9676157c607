#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/attributes.h"

namespace tributary {

// What a process says of itself by its environment: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry's
// resource SDK specification), and variables that an operator names. Nothing else of it is kept, and nothing of it is
// ever logged.

constexpr size_t kEnvironmentBytesMax = 1u << 20;        // of it is read
constexpr size_t kEnvironmentValueBytesMax = 64u << 10;  // longer variables count as dropped
constexpr size_t kEnvironmentAttributesBytesMax = 4096;  // encoded: what the dictionary takes as one string

struct ProcessEnvironment {
  std::string attributes;  // see EncodeAttributes; "" when it says nothing
  size_t dropped = 0;      // attributes and variables over a limit
  bool is_empty = false;   // not one variable
};

// `environment`: as /proc/PID/environ has it, "NAME=value" with a zero byte behind each. Hostile: a process may write
// anything there. Of two variables with one name the first counts, as for getenv. OTEL_SERVICE_NAME goes before
// service.name in OTEL_RESOURCE_ATTRIBUTES, service.* before all others where there is no room for all. Each of `names`
// that is there becomes "process.environment_variable.NAME".
ProcessEnvironment ParseProcessEnvironment(std::string_view environment, const std::vector<std::string>& names);

// `attributes` encoded so: kEnvironmentAttributesBytesMax at most, service.* before others. `dropped` is raised by what
// is left out.
std::string EncodeResource(const Attributes& attributes, size_t* dropped);
// Two texts of EncodeResource as one: what `first` says goes before what `second` says of the same.
std::string MergeResources(std::string_view second, std::string_view first, size_t* dropped);

// Reads and parses. NotFound, or another error: the process is gone, or is none of ours. Empty for kernel threads, for
// processes that are ending, and for those in the middle of an exec. Blocks as long as somebody holds the process's
// memory map.
absl::StatusOr<ProcessEnvironment> ReadProcessEnvironment(const std::string& proc_root, Pid pid,
                                                          const std::vector<std::string>& names);

}  // namespace tributary
