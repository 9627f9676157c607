#pragma once

#include <linux/bpf.h>

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// Maps that are pinned in a bpffs.

std::optional<bpf_map_info> MapInfo(int map_fd);
// Creates the folder in a bpffs if it is missing. FailedPrecondition if there is no bpffs.
absl::Status MakePinFolder(const std::string& folder);
// Replaces the map that is pinned at `path`, if any. At every moment, the old or the new map is pinned there.
absl::Status ReplacePin(int map_fd, const std::string& path);
// Removes the pin, unless another map has replaced it.
void Unpin(uint32_t map_id, const std::string& path);

}  // namespace tributary
