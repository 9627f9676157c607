#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "dwarf/dwarf_module.h"
#include "dwarf/function_entry.h"
#include "dwarf/line_program.h"

namespace tributary {

// Takes what a file's DWARF says of its code. Ids are the taker's own; 0 is none.
class DwarfSink {
 public:
  virtual ~DwarfSink() = default;
  // A name or a path, told again in every unit that has it.
  virtual uint32_t AddString(std::string_view text) = 0;
  // A function (parent 0), or a call of one that was inlined into `parent` at that file (a string) and line.
  virtual uint32_t AddNode(uint32_t name, uint32_t parent, uint32_t call_file, uint32_t call_line) = 0;
  // Code of a node; `depth` counts its parents. Parents' code comes first, and need not contain it where a compiler, or
  // somebody else, was careless.
  virtual void AddCode(AddressRange range, uint32_t depth, uint32_t node) = 0;
  // A sequence of a line program in order of addresses, with strings for files, and where the last row ends.
  virtual void AddLines(std::span<const DwarfLine> rows, uint64_t end) = 0;
};

// Tells a sink of the functions, inlined calls and lines of a module's units; code that was thrown away by the linker,
// whose addresses are not in `code`, is left out. Every unit is looked at: .debug_aranges lacks many.
class DwarfFunctions {
 public:
  static constexpr size_t kNestingMax = 1024;

  struct Counts {
    uint64_t units = 0, functions = 0, inlined = 0;
    uint64_t malformed = 0;      // units that end before their end, or have lines that cannot be read
    uint64_t missing_split = 0;  // units whose .dwo is not here
  };
  // The module of the .dwo of a skeleton unit, which stays until the next call; null: not here.
  using SplitModule = std::function<DwarfModule*(const DwarfUnit& skeleton)>;

  // `code`: where the file's code is, ascending.
  DwarfFunctions(std::span<const AddressRange> code, DwarfSink& sink) : code_(code), sink_(sink) {}

  void Read(DwarfModule& module, const SplitModule& split);
  const Counts& counts() const { return counts_; }

 private:
  // Of an entry that is open: which node its children are inlined into.
  struct Level {
    uint32_t node = 0, depth = 0;
  };

  void ReadUnit(DwarfModule& module, const DwarfUnit& unit, const SplitModule& split);
  void ReadLines(const DwarfModule& module, const DwarfUnit& unit);
  bool ReadEntries(DwarfModule& module, const DwarfUnit& unit);
  bool ReadFunction(DwarfModule& module, const DwarfUnit& unit, const DwAbbreviation& row, ByteReader& reader,
                    Level* level);
  uint32_t FileString(uint64_t file);
  bool IsCode(const AddressRange& range);

  const std::span<const AddressRange> code_;
  DwarfSink& sink_;
  Counts counts_;
  FunctionNames names_;
  LineProgram lines_;                   // of the unit that is read
  std::vector<uint32_t> file_strings_;  // of its files; 0: not told yet
  std::vector<AddressRange> ranges_;
  std::vector<DwarfLine> rows_;
};

}  // namespace tributary
