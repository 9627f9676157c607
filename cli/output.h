#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary::cli {

// Writes all of `content` to the file, or to standard output for "-".
absl::Status WriteOutput(const std::string& path, std::string_view content);

}  // namespace tributary::cli
