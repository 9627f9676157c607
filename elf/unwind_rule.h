#pragma once

#include <cstdint>
#include <string>

#include "bpf/include/unwind.h"

namespace tributary {

// A decoded unwind rule (bpf/include/unwind.h), which says how to find the caller's registers. Offsets are in bytes.
struct UnwindRule {
  trib_rule_kind kind = TRIB_RULE_NONE;
  trib_saved frame_pointer = TRIB_SAVED_SAME;
  trib_saved second = TRIB_SAVED_SAME;
  int32_t cfa_offset = 0;
  int32_t frame_pointer_offset = 0;
  // For most kinds: the offset at which the second register is saved. For TRIB_RULE_DEREF_…: the offset of the word to
  // read. If LastIsRegister(kind): a register number.
  int32_t last = 0;

  friend bool operator==(const UnwindRule&, const UnwindRule&) = default;
};

// Returns true if bits 48..63 of an encoded rule are a register number. For all other kinds, they are an offset in
// units of 8 bytes.
constexpr bool LastIsRegister(trib_rule_kind kind) {
  return kind == TRIB_RULE_REGISTER || kind == TRIB_RULE_RETURN_REGISTER;
}

// Offsets must be within the limits (TRIB_CFA_OFFSET_MAX, 8 × TRIB_SAVED_OFFSET_MAX). Offsets of saved registers must
// be multiples of 8.
constexpr uint64_t EncodeRule(const UnwindRule& rule) {
  int32_t last = LastIsRegister(rule.kind) ? rule.last : rule.last / 8;
  return static_cast<uint64_t>(rule.kind) | static_cast<uint64_t>(rule.frame_pointer) << 4 |
         static_cast<uint64_t>(rule.second) << 6 |
         static_cast<uint64_t>(static_cast<uint32_t>(rule.cfa_offset) & 0xffffff) << 8 |
         static_cast<uint64_t>(static_cast<uint16_t>(rule.frame_pointer_offset / 8)) << 32 |
         static_cast<uint64_t>(static_cast<uint16_t>(last)) << 48;
}

constexpr UnwindRule DecodeRule(uint64_t bits) {
  auto kind = static_cast<trib_rule_kind>(bits & 0xf);
  int32_t last = static_cast<int16_t>(bits >> 48);
  return {.kind = kind,
          .frame_pointer = static_cast<trib_saved>((bits >> 4) & 3),
          .second = static_cast<trib_saved>((bits >> 6) & 3),
          .cfa_offset = static_cast<int32_t>(static_cast<uint32_t>(bits >> 8) << 8) >> 8,
          .frame_pointer_offset = static_cast<int16_t>(bits >> 32) * 8,
          .last = LastIsRegister(kind) ? last : last * 8};
}

// Returns text such as "sp+16 fp=cfa-16 second=same", for tests and tools.
std::string FormatRule(uint64_t bits);

}  // namespace tributary
