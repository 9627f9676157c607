#pragma once

#include <cstdint>
#include <string_view>

#include "kernel-collector/processes/code_file.h"
#include "profile/frame_kinds.h"

namespace tributary {

// A frame before it is added to the dictionary. It is like Frame in profile/model.h, but contains the executable and
// the name instead of their numbers.
struct ResolvedFrame {
  FrameKind kind = FrameKind::kUnknown;
  bool is_caller = false;
  CodeFile* executable = nullptr;  // borrowed from the resolver or the mapping; null: unknown, or none
  uint64_t address = 0;            // or a runtime's code object
  uint32_t position = 0;           // in the code object; in a frame with a name: the line, 0: unknown
  std::string_view name;           // borrowed from the mapping's runtime; "": none
};

}  // namespace tributary
