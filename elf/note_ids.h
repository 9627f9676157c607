#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// Identities in a file's notes: the GNU build-id and the Go build id. The first of each kind stays.
struct NoteIds {
  std::optional<ExecutableId> gnu, go;

  // Looks for ids in `notes`, the bytes of a note segment or section.
  void Look(std::string_view notes, uint64_t alignment);
};

}  // namespace tributary
