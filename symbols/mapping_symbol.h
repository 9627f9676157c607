#pragma once

#include <string_view>

namespace tributary {

// Returns true for the symbols $x and $d, with or without a suffix. On arm64, such mapping symbols mark the start of
// code and of data. They are not names of functions. Source: ELF for the Arm 64-bit Architecture, "Mapping symbols".
inline bool IsMappingSymbol(std::string_view name) {
  return name.size() >= 2 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
         (name.size() == 2 || name[2] == '.');
}

}  // namespace tributary
