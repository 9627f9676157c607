#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Reads a whole small file, for example a /proc file. OutOfRange: the file has more than `bytes_max` bytes.
// FailedPrecondition: `path` is not a regular file. Such a file is not opened for reading, because this may block.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max);

// Opens a file for reading. An untrusted process may have chosen the path. So the file is first opened with O_PATH,
// which has no effect on it. Only a regular file is then opened for reading: a FIFO could block the collector, and
// opening a device can have effects.
absl::StatusOr<Fd> OpenRegularFile(const std::string& path);

// Does the same, but resolves `path` as if `root` were "/": symbolic links of a container's image cannot lead out of
// `root`.
absl::StatusOr<Fd> OpenRegularFileIn(const std::string& root, const std::string& path);

}  // namespace tributary
