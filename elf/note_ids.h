#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// The ids in a file's notes: the GNU build-id and the Go build id. If a file has several ids of a kind, the first one
// is used.
struct NoteIds {
  std::optional<ExecutableId> gnu, go;

  // Looks for ids in `notes`, the bytes of a note segment or section.
  void Look(std::string_view notes, uint64_t alignment);
};

}  // namespace tributary
