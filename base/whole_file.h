#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// All of a file, wherever the descriptor stands. ResourceExhausted: it has more than `bytes_max`. Other errors: as
// errno says, with `name` in them.
absl::StatusOr<std::string> ReadWholeFile(int fd, size_t bytes_max, std::string_view name);

// All of `bytes`, from where the descriptor stands. Errors: as errno says, with `name` in them; what was written stays.
absl::Status WriteToFile(int fd, std::string_view bytes, std::string_view name);

// Writes a file beside `path`, `parts` behind each other, and renames it: whoever opens the path finds what was there
// before or all of it, at any time. With `durable` also after a power cut. Errors: as errno says; nothing is left.
absl::Status WriteWholeFile(const std::string& path, std::span<const std::string_view> parts, bool durable,
                            mode_t mode = 0644);

}  // namespace tributary
