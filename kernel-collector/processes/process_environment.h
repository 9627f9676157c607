#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/attributes.h"

namespace tributary {

// Reads the resource attributes that a process declares in its environment: OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry's resource SDK specification), and the variables that the operator names.
// Other variables are not stored. No part of the environment is ever logged.

constexpr size_t kEnvironmentBytesMax = 1u << 20;        // at most this many bytes are read
constexpr size_t kEnvironmentValueBytesMax = 64u << 10;  // longer variables count as dropped
constexpr size_t kEnvironmentAttributesBytesMax = 4096;  // encoded: the dictionary's limit for one string

struct ProcessEnvironment {
  std::string attributes;  // see EncodeAttributes; "" if there are none
  size_t dropped = 0;      // attributes and variables above a limit
  bool is_empty = false;   // there is no variable at all
};

// Parses the text of /proc/PID/environ: "NAME=value", each followed by a zero byte. A process may write any bytes
// there. If two variables have the same name, the first counts, as for getenv. OTEL_SERVICE_NAME takes precedence over
// service.name in OTEL_RESOURCE_ATTRIBUTES. If not all attributes fit, service.* attributes are kept first. Each
// variable of `names` that is set becomes the attribute "process.environment_variable.NAME".
ProcessEnvironment ParseProcessEnvironment(std::string_view environment, const std::vector<std::string>& names);

// Encodes `attributes` like ParseProcessEnvironment: in at most kEnvironmentAttributesBytesMax, with service.*
// attributes first. Adds the number of omitted attributes to `dropped`.
std::string EncodeResource(const Attributes& attributes, size_t* dropped);
// Merges two results of EncodeResource. If both have an attribute, the value of `first` is used. Adds the number of
// omitted attributes to `dropped`.
std::string MergeResources(std::string_view second, std::string_view first, size_t* dropped);

// Reads and parses a process's environment. Returns NotFound or another error if the process has ended or may not be
// read. The result is empty for kernel threads, for ending processes, and for processes in the middle of an exec.
// Blocks while the process's memory map is locked.
absl::StatusOr<ProcessEnvironment> ReadProcessEnvironment(const std::string& proc_root, Pid pid,
                                                          const std::vector<std::string>& names);

}  // namespace tributary
