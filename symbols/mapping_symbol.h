#pragma once

#include <string_view>

namespace tributary {

// arm64 marks the begins of code and data with $x and $d, with or without a suffix. These symbols are no names. Source:
// ELF for the Arm 64-bit Architecture, "Mapping symbols".
inline bool IsMappingSymbol(std::string_view name) {
  return name.size() >= 2 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
         (name.size() == 2 || name[2] == '.');
}

}  // namespace tributary
