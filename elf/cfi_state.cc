#include "elf/cfi_state.h"

#include "elf/unwind_rule.h"

namespace tributary {
namespace {

using Where = CfiSaved::Where;

bool FitsSaved(int64_t offset) {
  return offset % 8 == 0 && offset / 8 <= TRIB_SAVED_OFFSET_MAX && offset / 8 >= -TRIB_SAVED_OFFSET_MAX;
}

trib_saved SavedOf(const CfiSaved& saved, int32_t* offset) {
  if (saved.where == Where::kSame) return TRIB_SAVED_SAME;
  bool in_memory = saved.where == Where::kCfa || saved.where == Where::kFramePointer;
  if (!in_memory || !FitsSaved(saved.value)) return TRIB_SAVED_LOST;
  *offset = static_cast<int32_t>(saved.value);
  return saved.where == Where::kCfa ? TRIB_SAVED_CFA : TRIB_SAVED_FP;
}

bool SetCfa(const CfiState& state, const CfiMachine& machine, UnwindRule* rule) {
  if (state.cfa_offset > TRIB_CFA_OFFSET_MAX || state.cfa_offset < -TRIB_CFA_OFFSET_MAX) return false;
  rule->cfa_offset = static_cast<int32_t>(state.cfa_offset);
  bool stack_pointer = state.cfa_register == machine.stack_pointer;
  bool frame_pointer = state.cfa_register == machine.frame_pointer;
  if (state.cfa == CfiState::Cfa::kDeref) {
    if (!(stack_pointer || frame_pointer) || !FitsSaved(state.deref_offset)) return false;
    rule->kind = stack_pointer ? TRIB_RULE_DEREF_SP : TRIB_RULE_DEREF_FP;
    rule->last = static_cast<int32_t>(state.deref_offset);
    return true;
  }
  if (stack_pointer || frame_pointer) {
    rule->kind = stack_pointer ? TRIB_RULE_SP : TRIB_RULE_FP;
  } else if (state.cfa_register == machine.second) {
    rule->kind = TRIB_RULE_SECOND;
  } else {
    if (state.cfa_register > INT16_MAX) return false;
    rule->kind = TRIB_RULE_REGISTER;
    rule->last = static_cast<int32_t>(state.cfa_register);
  }
  return true;
}

// Handles a return address in a register. A rule can express it only if the CFA still follows from the stack pointer.
bool SetReturnRegister(int64_t number, UnwindRule* rule) {
  if (rule->kind != TRIB_RULE_SP || number < 0 || number > INT16_MAX) return false;
  rule->kind = TRIB_RULE_RETURN_REGISTER;
  rule->second = TRIB_SAVED_LOST;
  rule->last = static_cast<int32_t>(number);
  return true;
}

bool SetX86(const CfiState& state, UnwindRule* rule) {
  bool has_second = rule->kind == TRIB_RULE_SP || rule->kind == TRIB_RULE_FP || rule->kind == TRIB_RULE_SECOND;
  if (state.return_address.where == Where::kRegister) return SetReturnRegister(state.return_address.value, rule);
  if (state.return_address.where != Where::kCfa || state.return_address.value != -8) return false;
  rule->second = has_second ? SavedOf(state.second, &rule->last) : TRIB_SAVED_LOST;
  return true;
}

bool SetArm64(const CfiState& state, UnwindRule* rule) {
  if (state.second.where == Where::kRegister) return SetReturnRegister(state.second.value, rule);
  if (rule->kind != TRIB_RULE_SP && rule->kind != TRIB_RULE_FP && rule->kind != TRIB_RULE_SECOND) return false;
  rule->second = SavedOf(state.second, &rule->last);
  return rule->second != TRIB_SAVED_LOST;  // the second register holds the return address
}

}  // namespace

uint64_t RuleOf(const CfiState& state, const CfiMachine& machine) {
  const CfiSaved& return_address = machine.arm64 ? state.second : state.return_address;
  if (return_address.where == Where::kUndefined) return TRIB_RULE_END;
  if (state.cfa == CfiState::Cfa::kPlt) return machine.arm64 ? TRIB_RULE_BAD : TRIB_RULE_PLT;
  UnwindRule rule;
  if (state.cfa == CfiState::Cfa::kUnsupported || !SetCfa(state, machine, &rule)) return TRIB_RULE_BAD;
  if (!(machine.arm64 ? SetArm64(state, &rule) : SetX86(state, &rule))) return TRIB_RULE_BAD;
  rule.frame_pointer = SavedOf(state.frame_pointer, &rule.frame_pointer_offset);
  return EncodeRule(rule);
}

}  // namespace tributary
