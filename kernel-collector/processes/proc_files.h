#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Reads a whole small file, a /proc file among them. OutOfRange: more than `bytes_max`. Never follows into something
// that blocks: anything but a regular file is FailedPrecondition.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max);

// Opens a file that another process chose the path of, for reading. The path is first opened without any effect
// (O_PATH), and only a regular file is then opened for real: a FIFO cannot block us and a device is not touched.
absl::StatusOr<Fd> OpenRegularFile(const std::string& path);

// Same, with `path` resolved as if `root` were "/": symbolic links of a container's image cannot lead out of it.
absl::StatusOr<Fd> OpenRegularFileIn(const std::string& root, const std::string& path);

}  // namespace tributary
