#pragma once

#include <cstdint>

#include "elf/cfi_expression.h"

namespace tributary {

// DWARF numbers of the registers that rules follow (the psABIs' tables).
struct CfiMachine {
  uint32_t stack_pointer = 0, frame_pointer = 0, second = 0, return_address = 0;
  bool arm64 = false;
};
inline constexpr CfiMachine kCfiX86_64{.stack_pointer = 7, .frame_pointer = 6, .second = 3, .return_address = 16};
inline constexpr CfiMachine kCfiArm64{
    .stack_pointer = 31, .frame_pointer = 29, .second = 30, .return_address = 30, .arm64 = true};

// Where a caller's register is.
struct CfiSaved {
  enum class Where : uint8_t { kSame, kUndefined, kCfa, kFramePointer, kRegister, kOther };
  Where where = Where::kSame;
  int64_t value = 0;  // offset in bytes; number of a register
};

// One row of the table that a program of call frame instructions describes, as far as rules need it.
struct CfiState {
  enum class Cfa : uint8_t { kRegister, kDeref, kPlt, kUnsupported };
  Cfa cfa = Cfa::kUnsupported;
  uint8_t plt_threshold = 0;
  uint32_t cfa_register = 0;
  int64_t cfa_offset = 0;
  int64_t deref_offset = 0;
  CfiSaved frame_pointer, second, return_address;  // the last is the second on arm64, and unused there
};

// TRIB_RULE_BAD where a rule cannot say it.
uint64_t RuleOf(const CfiState& state, const CfiMachine& machine);

}  // namespace tributary
