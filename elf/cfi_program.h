#pragma once

#include <cstdint>
#include <string_view>

#include "elf/cfi_state.h"
#include "elf/pointer_encoding.h"
#include "elf/row_builder.h"

namespace tributary {

// The content of a common information entry (CIE), which many function entries (FDE) use.
struct CfiCommon {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = kPointerAbsolute;
  bool augmentation_size = false;  // the FDEs of this CIE have augmentation data, too
  bool signal_frame = false;
  bool usable = false;
  CfiState initial;  // the state after the CIE's instructions
};

// Interprets call frame instructions (DWARF 5 §6.4.2, with the extensions of the LSB and of vendors). The time is
// proportional to the number of instruction bytes plus rows.
class CfiProgram {
 public:
  CfiProgram(const CfiMachine& machine, const CfiCommon& common) : machine_(machine), common_(common) {}

  // Runs the instructions of a CIE and stores the resulting state in common->initial. Returns false if they are
  // malformed.
  static bool RunInitial(const CfiMachine& machine, std::string_view instructions, CfiCommon* common);

  // Runs the instructions of an FDE. Adds the FDE's rows to `rows`, limited to `function` and to the range of `rows`.
  // `instructions_address`: the ELF address of the first instruction byte. Returns the number of rows that rules
  // (UnwindRule) cannot express. A malformed instruction makes one such row, which reaches to the end of the function.
  uint64_t Run(std::string_view instructions, uint64_t instructions_address, AddressRange function, RowBuilder* rows);

 private:
  // The limit for nested DW_CFA_remember_state. Compilers nest fewer states.
  static constexpr int kRememberedMax = 16;

  struct Cursor;
  bool Step(Cursor& cursor);
  bool StepExtended(Cursor& cursor, uint8_t opcode);
  bool DefineCfa(ByteReader& reader, uint8_t opcode);
  void DefineCfaExpression(std::string_view bytes);
  void SetSaved(uint64_t number, CfiSaved saved);
  void SetExpression(uint64_t number, std::string_view bytes);
  void Restore(uint64_t number);
  void Advance(Cursor& cursor, uint64_t location);
  void Emit(Cursor& cursor, uint64_t end);
  void EmitPlt(uint64_t begin, uint64_t end, RowBuilder* rows);
  CfiSaved CfiState::* Find(uint64_t number) const;

  const CfiMachine& machine_;
  const CfiCommon& common_;
  CfiState state_;
  CfiState remembered_[kRememberedMax];
  int remembered_count_ = 0;
  bool changed_ = true;
  uint64_t unsupported_ = 0;
};

}  // namespace tributary
