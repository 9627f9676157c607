#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Parses a kernel list of CPUs such as "0-3,8,10-11\n". Returns the CPUs in ascending order without duplicates.
// InvalidArgument if `text` is not such a list, or names a CPU above 8191 (the kernel's own limit). Source:
// Documentation/admin-guide/cputopology.rst.
absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text);

}  // namespace tributary
