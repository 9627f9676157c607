#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "dwarf/dwarf_functions.h"
#include "elf/elf_file.h"
#include "symbols/go_pclntab.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Where an executable's debug information is that is not in the file itself. Each gives an error where there is none.
struct DebugFileSource {
  using File = absl::StatusOr<std::unique_ptr<ElfFile>>;
  std::function<File()> package;                                                 // its .dwp
  std::function<File(std::string_view comp_dir, std::string_view name)> split;   // a unit's .dwo
  std::function<File(std::string_view path, std::string_view build_id)> shared;  // what dwz moved to another file
};

struct DebugSymbols {
  std::shared_ptr<const SymbolTable> table;
  DwarfFunctions::Counts counts;
  GoPclntab::Counts go;   // where DWARF says nothing of Go's code
  uint64_t left_out = 0;  // over the table's caps
};

// All that an executable, or its separate debug file, says of its code: functions, inlined calls and lines of DWARF 2
// to 5; what a Go program's own table says where DWARF does not; functions of .symtab and .dynsym. NotFound: none of
// it. Addresses of a kernel and of a module are those that samples have (symbols/kernel_file.h). ResourceExhausted:
// more than `bytes_max` of it. Hostile input: no worse than an error or a wrong name. Memory:
// the debug sections, and about half as much again.
absl::StatusOr<DebugSymbols> ReadDebugSymbols(ElfFile& file, const ExecutableId& id, const DebugFileSource& source,
                                              uint64_t bytes_max);

// Whose table is made of a file: `claimed`, if known, else its own id. InvalidArgument: it says itself that it is
// another's; a hash of contents says nothing, being of the file before it was stripped, or after. Also of a kernel or a
// module without a build-id. NotFound: an object file (.o, .dwo), which nobody runs.
absl::StatusOr<ExecutableId> IdentityForSymbols(ElfFile& file, const ExecutableId& claimed);

}  // namespace tributary
