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
  uint32_t file = 0;  // of the program's files; 0 as well as any that is not there: unknown before version 5
  uint32_t line = 0;  // 0: none
};

// A unit's line program: its files, and which code came from which of their lines. Section 6.2, versions 2 to 5.
// Hostile input: what a program may make is bounded by its bytes, but for kFilesMax and kRowsMax.
class LineProgram {
 public:
  static constexpr size_t kFilesMax = 1u << 20, kRowsMax = 1u << 24;

  // False: the header cannot be read.
  bool Open(const DwarfModule& module, const DwarfUnit& unit);

  // Path of a file as the compiler would have opened it: joined with its directory and the unit's; "": no such file.
  std::string Path(uint64_t file) const;
  size_t file_count() const { return files_.size(); }

  // Rows of one sequence in order of addresses, and where its last one ends.
  using Sequence = std::function<void(const std::vector<DwarfLine>& rows, uint64_t end)>;
  // False: it ends within a sequence, or makes more rows than it may; the sequences before were told.
  bool Run(const Sequence& tell);

 private:
  struct File {
    std::string_view path;
    uint64_t directory = 0;
  };
  // Registers of the state machine, as far as they are needed.
  struct State {
    uint64_t address = 0;
    uint64_t file = 1;
    uint64_t line = 1;  // wraps where the input is hostile
  };

  bool ReadOldTables(ByteReader& reader);
  bool ReadTables(ByteReader& reader);
  bool ReadTable(ByteReader& reader, std::vector<File>* out);
  bool RunExtended(ByteReader& reader, const Sequence& tell);
  void Special(uint8_t opcode);
  void AddRow();
  void EndSequence(const Sequence& tell);

  const DwarfModule* module_ = nullptr;
  DwarfUnit unit_;  // with the sizes of this header
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
