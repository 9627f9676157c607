#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tributary {

// Tracers are the OpenTelemetry eBPF profiler's names for the languages whose stacks it walks: "perl,php,go", or "all".
// Upper case and spaces around a name are allowed, as there.

// Returns the names of all tracers.
std::vector<std::string_view> AllTracers();

// Returns InvalidArgument if a name is not a tracer.
absl::Status CheckTracers(std::string_view tracers);

// Returns the value of --runtimes that switches the same languages on. CheckTracers must have accepted the list.
std::string RuntimesOfTracers(std::string_view tracers);

// Returns a sentence that names the tracers of the list that kernel-collector does not have yet. Returns "" if it has
// all of them. CheckTracers must have accepted the list.
std::string MissingTracers(std::string_view tracers);

}  // namespace tributary
