#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary::cli {

// Writes all of `content` to the file `path`, or to standard output if `path` is "-".
absl::Status WriteOutput(const std::string& path, std::string_view content);

}  // namespace tributary::cli
