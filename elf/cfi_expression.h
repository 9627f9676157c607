#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary {

// A DWARF expression of one of the few forms that compilers and linkers write into unwind information.
struct CfiExpression {
  enum class Kind : uint8_t {
    kRegister,  // register + offset
    kDeref,     // *(register + offset) + add
    kPlt,       // sp + 8 + ((pc & 15) >= plt_threshold) × 8: stubs of .plt on x86-64
  };
  Kind kind = Kind::kRegister;
  uint8_t plt_threshold = 0;
  uint32_t base = 0;  // DWARF register number
  int64_t offset = 0;
  int64_t add = 0;
};

// Returns nullopt if the expression has another form or is malformed.
std::optional<CfiExpression> ParseCfiExpression(std::string_view bytes);

}  // namespace tributary
