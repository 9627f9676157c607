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

// Receives functions, inlined calls and lines from DWARF. The sink chooses the ids of strings and nodes, above 0. Id 0
// means "none".
class DwarfSink {
 public:
  virtual ~DwarfSink() = default;
  // Adds a name or a path, and returns its id. May be called several times with the same text.
  virtual uint32_t AddString(std::string_view text) = 0;
  // Adds a function (if `parent` is 0) or an inlined call in the node `parent`, and returns the id of the new node.
  // `name` and `call_file` are ids of strings. `call_file` and `call_line` say where an inlined call is in the source.
  virtual uint32_t AddNode(uint32_t name, uint32_t parent, uint32_t call_file, uint32_t call_line) = 0;
  // Adds a range of addresses that belongs to a node. `depth` is the number of nodes above the node. The code of a
  // parent is added before the code of its children. The parent's code should contain the children's code, but some
  // compilers and tools write DWARF in which it does not.
  virtual void AddCode(AddressRange range, uint32_t depth, uint32_t node) = 0;
  // Adds the rows of one sequence of a line program, in order of addresses. Here, DwarfLine::file is an id of
  // AddString. The last row ends at the address `end`.
  virtual void AddLines(std::span<const DwarfLine> rows, uint64_t end) = 0;
};

// Reads the functions, inlined calls and lines of all units of a module, and passes them to a sink. Leaves out
// functions that the linker has removed: their addresses are not in `code`. Does not use .debug_aranges, because many
// units are missing there.
class DwarfFunctions {
 public:
  static constexpr size_t kNestingMax = 1024;

  struct Counts {
    uint64_t units = 0, functions = 0, inlined = 0;
    uint64_t malformed = 0;      // units with unreadable entries, plus units with unreadable lines
    uint64_t missing_split = 0;  // units with a .dwo that is not available
  };
  // Must return the DWARF of the .dwo file that belongs to the unit `skeleton` of the executable, or nullptr if it is
  // not available. The result must be valid until the next call.
  using SplitModule = std::function<DwarfModule*(const DwarfUnit& skeleton)>;

  // `code`: the ranges of addresses with code in the executable, in ascending order.
  DwarfFunctions(std::span<const AddressRange> code, DwarfSink& sink) : code_(code), sink_(sink) {}

  void Read(DwarfModule& module, const SplitModule& split);
  const Counts& counts() const { return counts_; }

 private:
  // One level of nesting: the node into which the inlined calls among an entry's children were inlined.
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
