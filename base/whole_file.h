#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// Returns the whole file, regardless of the descriptor's position. ResourceExhausted if it has more than `bytes_max`.
// Other errors: from errno, with `name` in the message.
absl::StatusOr<std::string> ReadWholeFile(int fd, size_t bytes_max, std::string_view name);

// Writes all of `bytes` at the descriptor's position. Errors: from errno, with `name` in the message; bytes that were
// written stay.
absl::Status WriteToFile(int fd, std::string_view bytes, std::string_view name);

// Writes `parts` one after the other to a temporary file next to `path`, then renames it. So a reader of `path` always
// finds either the old contents or all of the new ones. With `durable`, this holds even after a power failure. Errors:
// from errno; the temporary file is removed.
absl::Status WriteWholeFile(const std::string& path, std::span<const std::string_view> parts, bool durable,
                            mode_t mode = 0644);

}  // namespace tributary
