#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// Returns the contents of the file from its start, regardless of the descriptor's position. Returns ResourceExhausted
// if the file has more than `bytes_max` bytes. Returns the errors of ErrnoStatus (status.h) if it cannot be read.
// Messages contain `name`.
absl::StatusOr<std::string> ReadWholeFile(int fd, size_t bytes_max, std::string_view name);

// Writes all of `bytes` at the descriptor's position. Returns the errors of ErrnoStatus, with `name` in the message. A
// part of `bytes` may be in the file after an error.
absl::Status WriteToFile(int fd, std::string_view bytes, std::string_view name);

// Writes `parts` one after the other to a temporary file next to `path`, and then renames the file to `path`. So a
// reader of `path` finds either the old contents or all of the new contents. With `durable`, this is so even after a
// power failure. If it fails, removes the temporary file and returns the errors of ErrnoStatus.
absl::Status WriteWholeFile(const std::string& path, std::span<const std::string_view> parts, bool durable,
                            mode_t mode = 0644);

}  // namespace tributary
