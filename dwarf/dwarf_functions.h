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

// Receives the functions and lines of a file's DWARF. The sink chooses the ids; 0 means none.
class DwarfSink {
 public:
  virtual ~DwarfSink() = default;
  // Adds a name or a path. The same text is added again for every unit that contains it.
  virtual uint32_t AddString(std::string_view text) = 0;
  // Adds a function (parent 0), or an inlined call in `parent`, with the file (a string) and line of the call.
  virtual uint32_t AddNode(uint32_t name, uint32_t parent, uint32_t call_file, uint32_t call_line) = 0;
  // Adds code of a node. `depth` is the number of the node's parents. The code of a node's parents is added first. It
  // should contain the node's code, but does not in the output of some compilers and tools.
  virtual void AddCode(AddressRange range, uint32_t depth, uint32_t node) = 0;
  // Adds a sequence of a line program in order of addresses. DwarfLine::file is a string of AddString here. The last
  // row ends at address `end`.
  virtual void AddLines(std::span<const DwarfLine> rows, uint64_t end) = 0;
};

// Passes the functions, inlined calls and lines of a module's units to a sink. Leaves out functions that the linker
// dropped: their addresses are not in `code`. Reads every unit, because .debug_aranges lacks many.
class DwarfFunctions {
 public:
  static constexpr size_t kNestingMax = 1024;

  struct Counts {
    uint64_t units = 0, functions = 0, inlined = 0;
    uint64_t malformed = 0;      // units with entries or lines that cannot be read to the end
    uint64_t missing_split = 0;  // units with a .dwo that is not available
  };
  // Returns the module of a skeleton unit's .dwo, valid until the next call. Returns null if the .dwo is not available.
  using SplitModule = std::function<DwarfModule*(const DwarfUnit& skeleton)>;

  // `code`: ranges of the file's code, ascending.
  DwarfFunctions(std::span<const AddressRange> code, DwarfSink& sink) : code_(code), sink_(sink) {}

  void Read(DwarfModule& module, const SplitModule& split);
  const Counts& counts() const { return counts_; }

 private:
  // State of an entry whose children are being read: the node that the children are inlined into.
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
  LineProgram lines_;                   // of the current unit
  std::vector<uint32_t> file_strings_;  // of the unit's files; 0: not added yet
  std::vector<AddressRange> ranges_;
  std::vector<DwarfLine> rows_;
};

}  // namespace tributary
