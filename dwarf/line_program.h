#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dwarf/dwarf_module.h"

namespace tributary {

struct DwarfLine {
  uint64_t address = 0;
  uint32_t file = 0;  // index of a file of the program; unknown: an index out of range, or 0 before version 5
  uint32_t line = 0;  // 0: none
};

// Reads the line program of a unit (DWARF 5, section 6.2, and the formats since DWARF 2): its source files, and the
// file and line of each address. The input may be hostile, so the numbers of files and rows are limited.
class LineProgram {
 public:
  static constexpr size_t kFilesMax = 1u << 20, kRowsMax = 1u << 24;

  // Reads the header of the unit's line program. Returns false if it cannot be read.
  bool Open(const DwarfModule& module, const DwarfUnit& unit);

  // Returns the path of the file with this index, joined with its directory and the unit's directory. Returns "" if
  // there is no such file.
  std::string Path(uint64_t file) const;
  size_t file_count() const { return files_.size(); }

  // Receives the rows of one sequence, in order of addresses. The last row ends at the address `end`.
  using Sequence = std::function<void(const std::vector<DwarfLine>& rows, uint64_t end)>;
  // Runs the program, and calls `on_sequence` for each sequence that has code. Returns false if the program ends within
  // a sequence, is malformed, or makes kRowsMax rows. `on_sequence` was then called for the sequences before that
  // place.
  bool Run(const Sequence& on_sequence);

 private:
  struct File {
    std::string_view path;
    uint64_t directory = 0;
  };
  // Those registers of DWARF's state machine that are needed here.
  struct State {
    uint64_t address = 0;
    uint64_t file = 1;
    uint64_t line = 1;  // wraps if the input is hostile
  };

  bool ReadOldTables(ByteReader& reader);
  bool ReadTables(ByteReader& reader);
  bool ReadTable(ByteReader& reader, std::vector<File>* out);
  bool RunExtended(ByteReader& reader, const Sequence& on_sequence);
  void Special(uint8_t opcode);
  void AddRow();
  void EndSequence(const Sequence& on_sequence);

  const DwarfModule* module_ = nullptr;
  DwarfUnit unit_;  // with the sizes from the header of the line program
  std::string_view program_;
  uint16_t version_ = 0;
  uint8_t instruction_bytes_ = 1;
  int8_t line_base_ = 0;
  uint8_t line_range_ = 1, opcode_base_ = 1;
  uint8_t operand_counts_[256] = {};
  std::vector<File> directories_, files_;

  State state_;
  std::vector<DwarfLine> rows_;
  size_t rows_made_ = 0;
};

}  // namespace tributary
