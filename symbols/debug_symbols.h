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

// Opens the other files that contain debug information of an executable. Each function returns an error if its file
// does not exist.
struct DebugFileSource {
  using File = absl::StatusOr<std::unique_ptr<ElfFile>>;
  std::function<File()> package;                                                 // the executable's package (.dwp)
  std::function<File(std::string_view comp_dir, std::string_view name)> split;   // the .dwo file of a compilation unit
  std::function<File(std::string_view path, std::string_view build_id)> shared;  // the common file made by dwz
};

struct DebugSymbols {
  std::shared_ptr<const SymbolTable> table;
  DwarfFunctions::Counts counts;
  GoPclntab::Counts go;   // all 0 if the file is not a Go program, or if DWARF covers Go's code
  uint64_t left_out = 0;  // data that could not be read, or that was above a limit
};

// Reads the names and lines of an executable's code from the executable, or from its separate debug file. Uses three
// sources: functions, inlined calls and lines of DWARF 2 to 5; a Go program's own table, for Go code that DWARF does
// not cover; the functions of AddElfSymbols (symbols/elf_symbols.h). NotFound if the file has none of these. For a
// kernel or a module, the table has the addresses of samples (symbols/kernel_file.h). ResourceExhausted if there are
// more than `bytes_max` bytes. The input may be hostile: the worst result is an error or a wrong name. Needs about 1.5
// times the memory of the debug sections.
absl::StatusOr<DebugSymbols> ReadDebugSymbols(ElfFile& file, const ExecutableId& id, const DebugFileSource& source,
                                              uint64_t bytes_max);

// Returns the id for a symbol table of this file: `claimed` if it is not kNone, else the file's own id. InvalidArgument
// if `claimed` and the file's own id differ. Content hashes are not compared, because stripping changes the content.
// InvalidArgument also if the file is a kernel or a module without a build-id. NotFound if it is an object file (.o,
// .dwo), because object files do not run.
absl::StatusOr<ExecutableId> IdentityForSymbols(ElfFile& file, const ExecutableId& claimed);

}  // namespace tributary
