#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// The ids in a file's notes: the GNU build-id and the Go build id. If a file has several ids of a kind, the first id is
// used.
struct NoteIds {
  std::optional<ExecutableId> gnu, go;

  // Searches `notes`, the bytes of a note segment or section, for ids that were not found yet.
  void Look(std::string_view notes, uint64_t alignment);
};

}  // namespace tributary
