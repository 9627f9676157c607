#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Reads a whole small file, for example a /proc file. OutOfRange: more than `bytes_max`. Never opens a file that
// blocks: FailedPrecondition if `path` is not a regular file.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max);

// Opens a file for reading. Another process may have chosen the path. The path is first opened without any effect
// (O_PATH). Only a regular file is then really opened, so a FIFO cannot block us and a device is not touched.
absl::StatusOr<Fd> OpenRegularFile(const std::string& path);

// Does the same, but resolves `path` as if `root` were "/": symbolic links of a container's image cannot lead out of
// `root`.
absl::StatusOr<Fd> OpenRegularFileIn(const std::string& root, const std::string& path);

}  // namespace tributary
