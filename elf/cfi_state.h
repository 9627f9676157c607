#pragma once

#include <cstdint>

#include "elf/cfi_expression.h"

namespace tributary {

// DWARF numbers of the registers that unwind rules use (from the tables of the psABIs).
struct CfiMachine {
  uint32_t stack_pointer = 0, frame_pointer = 0, second = 0, return_address = 0;
  bool arm64 = false;
};
inline constexpr CfiMachine kCfiX86_64{.stack_pointer = 7, .frame_pointer = 6, .second = 3, .return_address = 16};
inline constexpr CfiMachine kCfiArm64{
    .stack_pointer = 31, .frame_pointer = 29, .second = 30, .return_address = 30, .arm64 = true};

// Where a register of the caller is saved.
struct CfiSaved {
  enum class Where : uint8_t { kSame, kUndefined, kCfa, kFramePointer, kRegister, kOther };
  Where where = Where::kSame;
  int64_t value = 0;  // offset in bytes, or a register number
};

// One row of the table that call frame instructions describe. Contains only the columns that unwind rules need.
struct CfiState {
  enum class Cfa : uint8_t { kRegister, kDeref, kPlt, kUnsupported };
  Cfa cfa = Cfa::kUnsupported;
  uint8_t plt_threshold = 0;
  uint32_t cfa_register = 0;
  int64_t cfa_offset = 0;
  int64_t deref_offset = 0;
  CfiSaved frame_pointer, second, return_address;  // on arm64 `second` is the return address
};

// Returns the encoded rule (UnwindRule) for the state, or TRIB_RULE_BAD if no rule can express the state.
uint64_t RuleOf(const CfiState& state, const CfiMachine& machine);

}  // namespace tributary
