#include "elf/cfi_program.h"

#include <algorithm>

#include "bpf/include/unwind.h"

namespace tributary {
namespace {

using Where = CfiSaved::Where;

// Source: DWARF 5 §7.24; opcodes from 0x1d on are vendors'. The first three opcodes hold an operand in their low six
// bits.
enum : uint8_t {
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kMipsAdvanceLoc8 = 0x1d,
  kAarch64NegateRaStateWithPc = 0x2c,
  kAarch64NegateRaState = 0x2d,
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};

// Limit of a function with stubs that push at an unusual byte. Such stubs get their own rows. A larger function does
// not consist of stubs.
constexpr uint64_t kPltBytesMax = 1u << 20;
constexpr uint64_t kPltStubBytes = 16;
constexpr uint8_t kPltUsualThreshold = 11;

// Numbers come from LEB128 and may have any value, so the product must wrap and not overflow.
int64_t Scaled(uint64_t number, int64_t factor) { return static_cast<int64_t>(number * static_cast<uint64_t>(factor)); }

}  // namespace

struct CfiProgram::Cursor {
  ByteReader reader;
  uint64_t instructions_address = 0;
  size_t instructions_size = 0;
  uint64_t location = 0;
  AddressRange function;
  RowBuilder* rows = nullptr;  // null for a CIE's instructions

  bool done() const { return location >= function.end; }
};

bool CfiProgram::RunInitial(const CfiMachine& machine, std::string_view instructions, CfiCommon* common) {
  CfiProgram program(machine, *common);
  // Place of the return address on x86-64 if the CIE does not define it.
  if (!machine.arm64) program.state_.return_address = {Where::kCfa, -8};
  Cursor cursor{
      .reader = ByteReader(instructions), .instructions_size = instructions.size(), .function = {0, UINT64_MAX}};
  while (!cursor.reader.at_end() && !cursor.reader.bad()) {
    if (!program.Step(cursor) || cursor.location != 0) return false;
  }
  if (cursor.reader.bad()) return false;
  common->initial = program.state_;
  return true;
}

uint64_t CfiProgram::Run(std::string_view instructions, uint64_t instructions_address, AddressRange function,
                         RowBuilder* rows) {
  function.end = std::min(function.end, rows->range().end);
  if (common_.signal_frame) {
    rows->Add(function.begin, TRIB_RULE_SIGNAL);
    return 0;
  }
  state_ = common_.initial;
  remembered_count_ = 0;
  changed_ = true;
  unsupported_ = 0;
  Cursor cursor{.reader = ByteReader(instructions),
                .instructions_address = instructions_address,
                .instructions_size = instructions.size(),
                .location = function.begin,
                .function = function,
                .rows = rows};
  bool ok = true;
  while (ok && !cursor.reader.at_end() && !cursor.done()) ok = Step(cursor) && !cursor.reader.bad();
  if (cursor.done()) return unsupported_;
  if (ok && !cursor.reader.bad()) {
    Emit(cursor, UINT64_MAX);
  } else {
    rows->Add(cursor.location, TRIB_RULE_BAD);
    ++unsupported_;
  }
  return unsupported_;
}

bool CfiProgram::Step(Cursor& cursor) {
  uint8_t opcode = cursor.reader.Byte();
  uint8_t operand = opcode & 0x3f;
  switch (opcode & 0xc0) {
    case kAdvanceLoc:
      Advance(cursor, cursor.location + operand * common_.code_alignment);
      return true;
    case kOffset:
      SetSaved(operand, {Where::kCfa, Scaled(cursor.reader.Uleb(), common_.data_alignment)});
      return true;
    case kRestore:
      Restore(operand);
      return true;
    default:
      return StepExtended(cursor, opcode);
  }
}

bool CfiProgram::StepExtended(Cursor& cursor, uint8_t opcode) {
  ByteReader& reader = cursor.reader;
  uint64_t number = 0;
  switch (opcode) {
    case kNop:
      return true;
    case kSetLoc: {
      uint64_t position = cursor.instructions_size - reader.left();
      auto location = ReadPointer(reader, common_.pointer_encoding, cursor.instructions_address + position);
      if (!location || *location < cursor.location) return false;
      Advance(cursor, *location);
      return true;
    }
    case kAdvanceLoc1:
      Advance(cursor, cursor.location + reader.Fixed<uint8_t>() * common_.code_alignment);
      return true;
    case kAdvanceLoc2:
      Advance(cursor, cursor.location + reader.Fixed<uint16_t>() * common_.code_alignment);
      return true;
    case kAdvanceLoc4:
      Advance(cursor, cursor.location + reader.Fixed<uint32_t>() * common_.code_alignment);
      return true;
    case kMipsAdvanceLoc8:
      Advance(cursor, cursor.location + reader.Fixed<uint64_t>() * common_.code_alignment);
      return true;
    case kOffsetExtended:
      number = reader.Uleb();
      SetSaved(number, {Where::kCfa, Scaled(reader.Uleb(), common_.data_alignment)});
      return true;
    case kOffsetExtendedSf:
      number = reader.Uleb();
      SetSaved(number, {Where::kCfa, Scaled(static_cast<uint64_t>(reader.Sleb()), common_.data_alignment)});
      return true;
    case kGnuNegativeOffsetExtended:
      number = reader.Uleb();
      SetSaved(number, {Where::kCfa, Scaled(~reader.Uleb() + 1, common_.data_alignment)});
      return true;
    case kRestoreExtended:
      Restore(reader.Uleb());
      return true;
    case kUndefined:
      SetSaved(reader.Uleb(), {Where::kUndefined});
      return true;
    case kSameValue:
      SetSaved(reader.Uleb(), {Where::kSame});
      return true;
    case kRegister: {
      number = reader.Uleb();
      uint64_t other = reader.Uleb();
      SetSaved(number, {Where::kRegister, static_cast<int64_t>(other)});
      return true;
    }
    case kValOffset:
    case kValOffsetSf:  // defines the value itself, not its place: useful only for the stack pointer
      number = reader.Uleb();
      reader.Uleb();
      SetSaved(number, {Where::kOther});
      return true;
    case kExpression:
      number = reader.Uleb();
      SetExpression(number, reader.Bytes(reader.Uleb()));
      return true;
    case kValExpression:
      number = reader.Uleb();
      reader.Bytes(reader.Uleb());
      SetSaved(number, {Where::kOther});
      return true;
    case kRememberState:
      if (remembered_count_ == kRememberedMax) return false;
      remembered_[remembered_count_++] = state_;
      return true;
    case kRestoreState:
      if (remembered_count_ == 0) return false;
      state_ = remembered_[--remembered_count_];
      changed_ = true;
      return true;
    case kGnuArgsSize:
      reader.Uleb();
      return true;
    case kAarch64NegateRaStateWithPc:
    case kAarch64NegateRaState:  // the walk removes the authentication code of return addresses, signed or not
      return machine_.arm64;
    default:
      return DefineCfa(reader, opcode);
  }
}

bool CfiProgram::DefineCfa(ByteReader& reader, uint8_t opcode) {
  changed_ = true;
  uint64_t number = state_.cfa_register;
  switch (opcode) {
    case kDefCfa:
      number = reader.Uleb();
      state_.cfa_offset = static_cast<int64_t>(reader.Uleb());
      break;
    case kDefCfaSf:
      number = reader.Uleb();
      state_.cfa_offset = Scaled(static_cast<uint64_t>(reader.Sleb()), common_.data_alignment);
      break;
    case kDefCfaRegister:
      number = reader.Uleb();
      break;
    case kDefCfaOffset:
      state_.cfa_offset = static_cast<int64_t>(reader.Uleb());
      break;
    case kDefCfaOffsetSf:
      state_.cfa_offset = Scaled(static_cast<uint64_t>(reader.Sleb()), common_.data_alignment);
      break;
    case kDefCfaExpression:
      DefineCfaExpression(reader.Bytes(reader.Uleb()));
      return true;
    default:
      return false;
  }
  state_.cfa = CfiState::Cfa::kRegister;
  state_.cfa_register = static_cast<uint32_t>(std::min<uint64_t>(number, UINT32_MAX));
  return true;
}

void CfiProgram::DefineCfaExpression(std::string_view bytes) {
  state_.cfa = CfiState::Cfa::kUnsupported;
  auto expression = ParseCfiExpression(bytes);
  if (!expression) return;
  state_.cfa_register = expression->base;
  switch (expression->kind) {
    case CfiExpression::Kind::kRegister:
      state_.cfa = CfiState::Cfa::kRegister;
      state_.cfa_offset = expression->offset;
      break;
    case CfiExpression::Kind::kDeref:
      state_.cfa = CfiState::Cfa::kDeref;
      state_.deref_offset = expression->offset;
      state_.cfa_offset = expression->add;
      break;
    case CfiExpression::Kind::kPlt:
      state_.cfa = CfiState::Cfa::kPlt;
      state_.plt_threshold = expression->plt_threshold;
      break;
  }
}

CfiSaved CfiState::* CfiProgram::Find(uint64_t number) const {
  if (number == machine_.frame_pointer) return &CfiState::frame_pointer;
  if (number == machine_.second) return &CfiState::second;
  if (number == machine_.return_address) return &CfiState::return_address;
  return nullptr;
}

void CfiProgram::SetSaved(uint64_t number, CfiSaved saved) {
  CfiSaved CfiState::* place = Find(number);
  if (place == nullptr) return;
  state_.*place = saved;
  changed_ = true;
}

void CfiProgram::SetExpression(uint64_t number, std::string_view bytes) {
  CfiSaved saved{Where::kOther};
  auto expression = ParseCfiExpression(bytes);
  if (expression && expression->kind == CfiExpression::Kind::kRegister && expression->base == machine_.frame_pointer) {
    saved = {Where::kFramePointer, expression->offset};
  }
  SetSaved(number, saved);
}

void CfiProgram::Restore(uint64_t number) {
  CfiSaved CfiState::* place = Find(number);
  if (place == nullptr) return;
  state_.*place = common_.initial.*place;
  changed_ = true;
}

void CfiProgram::Advance(Cursor& cursor, uint64_t location) {
  // Skips an empty row, or a row that wraps around.
  if (location <= cursor.location) return;
  if (changed_ || state_.cfa == CfiState::Cfa::kPlt) {
    Emit(cursor, location < cursor.function.end ? location : UINT64_MAX);
  }
  cursor.location = location;
}

void CfiProgram::Emit(Cursor& cursor, uint64_t end) {
  // Skips a row that ends before the range. `changed_` then stays set, so that the next row is added instead. The last
  // row of a function is never skipped: its `end` is beyond all addresses, because the row also covers the padding
  // after the function.
  if (cursor.rows == nullptr || end <= cursor.rows->range().begin) return;
  bool other_plt = state_.cfa == CfiState::Cfa::kPlt && state_.plt_threshold != kPltUsualThreshold;
  if (other_plt && !machine_.arm64 && cursor.function.end - cursor.function.begin <= kPltBytesMax) {
    EmitPlt(cursor.location, std::min(end, cursor.function.end), cursor.rows);
  } else if (changed_) {
    uint64_t rule = other_plt ? uint64_t{TRIB_RULE_BAD} : RuleOf(state_, machine_);
    if (rule == TRIB_RULE_BAD) ++unsupported_;
    cursor.rows->Add(cursor.location, rule);
  }
  changed_ = false;
}

void CfiProgram::EmitPlt(uint64_t begin, uint64_t end, RowBuilder* rows) {
  CfiState state = state_;
  state.cfa = CfiState::Cfa::kRegister;
  state.cfa_register = machine_.stack_pointer;
  state.cfa_offset = 8;
  uint64_t before = RuleOf(state, machine_);
  state.cfa_offset = 16;
  uint64_t after = RuleOf(state, machine_);
  if (begin < rows->range().begin) begin = std::max(begin, rows->range().begin & ~(kPltStubBytes - 1));
  for (uint64_t at = begin; at < end;) {
    uint64_t stub = at & ~(kPltStubBytes - 1);
    uint64_t push = stub + state.plt_threshold;
    rows->Add(at, at < push ? before : after);
    at = at < push && state.plt_threshold < kPltStubBytes ? push : stub + kPltStubBytes;
  }
}

}  // namespace tributary
