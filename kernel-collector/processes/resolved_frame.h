#pragma once

#include <cstdint>
#include <string_view>

#include "kernel-collector/processes/code_file.h"
#include "profile/frame_kinds.h"

namespace tributary {

// A frame without a number yet: the content of profile/model.h's Frame, but with the executable and the name
// themselves.
struct ResolvedFrame {
  FrameKind kind = FrameKind::kUnknown;
  bool is_caller = false;
  CodeFile* executable = nullptr;  // borrowed from the resolver or the mapping; null: unknown, or none
  uint64_t address = 0;            // or a runtime's code object
  uint32_t position = 0;           // in the code object; in a frame with a name: the line, 0: unknown
  std::string_view name;           // borrowed from the mapping's runtime; "": none
};

}  // namespace tributary
