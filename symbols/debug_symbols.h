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

// Opens the files that hold an executable's debug information, apart from the executable itself. Each function returns
// an error if its file does not exist.
struct DebugFileSource {
  using File = absl::StatusOr<std::unique_ptr<ElfFile>>;
  std::function<File()> package;                                                 // the executable's .dwp
  std::function<File(std::string_view comp_dir, std::string_view name)> split;   // the .dwo of a unit
  std::function<File(std::string_view path, std::string_view build_id)> shared;  // the file that dwz made
};

struct DebugSymbols {
  std::shared_ptr<const SymbolTable> table;
  DwarfFunctions::Counts counts;
  GoPclntab::Counts go;   // if DWARF does not cover Go's code
  uint64_t left_out = 0;  // over the table's limits
};

// Reads everything that an executable, or its separate debug file, contains about its code. Sources: functions, inlined
// calls and lines of DWARF 2 to 5; a Go program's own table where DWARF does not cover Go's code; functions of .symtab
// and .dynsym. NotFound if the file has none of these. The addresses of a kernel or a module are those of samples
// (symbols/kernel_file.h). ResourceExhausted if there are more than `bytes_max` bytes. The input may be hostile: the
// worst result is an error or a wrong name. Memory: the debug sections, and about half as much again.
absl::StatusOr<DebugSymbols> ReadDebugSymbols(ElfFile& file, const ExecutableId& id, const DebugFileSource& source,
                                              uint64_t bytes_max);

// Returns the id for a symbol table of this file: `claimed`, if known, else the file's own id. InvalidArgument if the
// file's own id is another one. A content hash is not compared: it may be of the file before or after stripping.
// InvalidArgument also for a kernel or a module without a build-id. NotFound for an object file (.o, .dwo), because
// object files do not run.
absl::StatusOr<ExecutableId> IdentityForSymbols(ElfFile& file, const ExecutableId& claimed);

}  // namespace tributary
