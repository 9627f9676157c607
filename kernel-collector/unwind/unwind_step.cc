#include "kernel-collector/unwind/unwind_step.h"

#include <cstring>

namespace tributary {
namespace {

constexpr uint64_t kArm64AddressMask = (uint64_t{1} << 48) - 1;  // above: pointer authentication

struct SignalOffsets {
  uint64_t fp, second, sp, pc;
};
constexpr SignalOffsets kX86Signal{120, 128, 160, 168};
constexpr SignalOffsets kArm64Signal{544, 552, 560, 568};

int32_t CfaOffset(uint64_t rule) { return static_cast<int32_t>(static_cast<uint32_t>(rule)) >> 8; }
int64_t FpOffset(uint64_t rule) { return 8 * static_cast<int64_t>(static_cast<int16_t>(rule >> 32)); }
int64_t LastOffset(uint64_t rule) { return 8 * static_cast<int64_t>(static_cast<int16_t>(rule >> 48)); }

class Step {
 public:
  Step(uint64_t rule, const StackCopy& copy, Architecture architecture, FrameRegisters* registers)
      : rule_(rule), copy_(copy), architecture_(architecture), from_(*registers), out_(registers) {}

  StepResult Run() {
    auto kind = static_cast<trib_rule_kind>(rule_ & 15);
    switch (kind) {
      case TRIB_RULE_NONE:
        return ByFramePointer();
      case TRIB_RULE_SIGNAL:
        return ThroughSignal();
      case TRIB_RULE_END:
        return Stop(TRIB_STOP_END);
      default:
        break;
    }
    uint64_t cfa = 0;
    if (!Cfa(kind, &cfa)) return Stop(failure_);
    return ToCaller(kind, cfa);
  }

 private:
  static StepResult Stop(trib_stop stop) { return {true, stop}; }

  bool Read(uint64_t address, uint64_t* value) {
    if (address < copy_.begin) {
      failure_ = TRIB_STOP_UNREADABLE;
      return false;
    }
    uint64_t offset = address - copy_.begin;
    if (copy_.bytes.size() < 8 || offset > copy_.bytes.size() - 8) {
      failure_ = TRIB_STOP_NO_PAGE;
      return false;
    }
    std::memcpy(value, copy_.bytes.data() + offset, 8);
    return true;
  }

  uint64_t CodeAddress(uint64_t address) const {
    return architecture_ == Architecture::kArm64 ? address & kArm64AddressMask : address;
  }

  // Reads a register by DWARF's number. Only the followed registers are available.
  bool Register(uint64_t number, uint64_t* value) {
    bool x86 = architecture_ == Architecture::kX86;
    if (number == (x86 ? 6 : 29)) {
      *value = from_.fp;
    } else if (number == (x86 ? 7 : 31)) {
      *value = from_.sp;
    } else if (number == (x86 ? 3 : 30)) {
      *value = from_.second;
    } else {
      failure_ = TRIB_STOP_BAD_RULE;
      return false;
    }
    return true;
  }

  bool Cfa(trib_rule_kind kind, uint64_t* cfa) {
    auto offset = static_cast<uint64_t>(static_cast<int64_t>(CfaOffset(rule_)));
    switch (kind) {
      case TRIB_RULE_SP:
      case TRIB_RULE_RETURN_REGISTER:
        *cfa = from_.sp + offset;
        return true;
      case TRIB_RULE_FP:
        *cfa = from_.fp + offset;
        return true;
      case TRIB_RULE_SECOND:
        *cfa = from_.second + offset;
        return true;
      case TRIB_RULE_DEREF_SP:
      case TRIB_RULE_DEREF_FP: {
        uint64_t base = kind == TRIB_RULE_DEREF_SP ? from_.sp : from_.fp;
        if (!Read(base + static_cast<uint64_t>(LastOffset(rule_)), cfa)) return false;
        *cfa += offset;
        return true;
      }
      case TRIB_RULE_PLT:
        *cfa = from_.sp + 8 + ((from_.pc & 15) >= 11 ? 8 : 0);
        return true;
      case TRIB_RULE_REGISTER:
        if (!Register(rule_ >> 48, cfa)) return false;
        *cfa += offset;
        return true;
      default:
        failure_ = TRIB_STOP_BAD_RULE;
        return false;
    }
  }

  // In an epilogue, compilers still name the place that a register was popped from. That place is below the stack
  // pointer, where the copy has no bytes. The register then has its caller's value.
  bool ReadSaved(uint64_t address, uint64_t same, uint64_t* value) {
    if (address < from_.sp && address < copy_.begin) {
      *value = same;
      return true;
    }
    return Read(address, value);
  }

  bool Saved(uint64_t how, int64_t offset, uint64_t same, uint64_t cfa, uint64_t* value) {
    switch (how & 3) {
      case TRIB_SAVED_SAME:
        *value = same;
        return true;
      case TRIB_SAVED_CFA:
        return ReadSaved(cfa + static_cast<uint64_t>(offset), same, value);
      case TRIB_SAVED_FP:
        return ReadSaved(from_.fp + static_cast<uint64_t>(offset), same, value);
      default:
        *value = 0;
        return true;
    }
  }

  StepResult ToCaller(trib_rule_kind kind, uint64_t cfa) {
    // A function that has called another function has a frame. Only an interrupted function may not have a frame yet.
    if (from_.is_caller ? cfa <= from_.sp : cfa < from_.sp) return Stop(TRIB_STOP_NO_PROGRESS);
    FrameRegisters to;
    to.sp = cfa;
    if (!Saved(rule_ >> 4, FpOffset(rule_), from_.fp, cfa, &to.fp)) return Stop(failure_);
    bool last_is_other = kind == TRIB_RULE_DEREF_SP || kind == TRIB_RULE_DEREF_FP || kind == TRIB_RULE_REGISTER;
    uint64_t second_saved = last_is_other ? uint64_t{TRIB_SAVED_LOST} : rule_ >> 6 & 3;
    // The rule cannot contain the place of the second register: its bits hold the return register.
    if (kind == TRIB_RULE_RETURN_REGISTER && second_saved != TRIB_SAVED_SAME) second_saved = TRIB_SAVED_LOST;
    if (!Saved(second_saved, LastOffset(rule_), from_.second, cfa, &to.second)) return Stop(failure_);
    if (kind == TRIB_RULE_RETURN_REGISTER) {
      if (!Register(rule_ >> 48, &to.pc)) return Stop(failure_);
    } else if (architecture_ == Architecture::kArm64) {
      to.pc = to.second;
    } else if (!Read(cfa - 8, &to.pc)) {
      return Stop(failure_);
    }
    return Go(to);
  }

  StepResult Go(FrameRegisters to) {
    to.pc = CodeAddress(to.pc);
    to.is_caller = true;
    if (to.pc == 0) return Stop(TRIB_STOP_FRAME_POINTER_END);
    *out_ = to;
    return {};
  }

  bool IsOutermost(uint64_t stack_begin) const {
    uint64_t room = stack_begin - from_.sp;
    return room < TRIB_START_STACK_BYTES && from_.fp - from_.sp >= room;
  }

  StepResult ByFramePointer() {
    if (IsOutermost(copy_.start_stack) || IsOutermost(copy_.thread_pointer)) return Stop(TRIB_STOP_STACK_START);
    if (from_.fp == 0) return Stop(TRIB_STOP_FRAME_POINTER_END);
    FrameRegisters to;
    to.sp = from_.fp + 16;
    if (to.sp <= from_.sp) return Stop(TRIB_STOP_NO_PROGRESS);
    if (!Read(from_.fp, &to.fp) || !Read(from_.fp + 8, &to.pc)) return Stop(failure_);
    // On x86-64, callees rarely save `second` (rbx) here.
    to.second = architecture_ == Architecture::kArm64 ? to.pc : from_.second;
    return Go(to);
  }

  StepResult ThroughSignal() {
    const SignalOffsets& at = architecture_ == Architecture::kX86 ? kX86Signal : kArm64Signal;
    FrameRegisters to;
    if (!Read(from_.sp + at.fp, &to.fp) || !Read(from_.sp + at.second, &to.second) || !Read(from_.sp + at.sp, &to.sp) ||
        !Read(from_.sp + at.pc, &to.pc)) {
      return Stop(failure_);
    }
    to.pc = CodeAddress(to.pc);
    *out_ = to;
    return {};
  }

  const uint64_t rule_;
  const StackCopy& copy_;
  const Architecture architecture_;
  const FrameRegisters from_;
  FrameRegisters* out_;
  trib_stop failure_ = TRIB_STOP_NONE;
};

}  // namespace

StepResult StepByRule(uint64_t rule, const StackCopy& copy, Architecture architecture, FrameRegisters* registers) {
  return Step(rule, copy, architecture, registers).Run();
}

}  // namespace tributary
