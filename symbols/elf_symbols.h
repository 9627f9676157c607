#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"
#include "symbols/symbol_builder.h"

namespace tributary {

constexpr size_t kElfSymbolsMax = 4'000'000;

// Function symbols of .symtab, or where that is stripped of .gnu_debugdata's, and of .dynsym: STT_FUNC and
// STT_GNU_IFUNC (and sized STT_NOTYPE in executable sections), defined, in an executable segment. A symbol of size 0
// extends to the next symbol or to the end of its section. Aliases: GLOBAL before WEAK before LOCAL, .symtab before
// .dynsym. arm64's $x/$d markers are left out. A relocatable file's addresses are those of elf/module_layout.h. Where
// code has no symbol: functions without a name, by their bounds in .eh_frame. NotFound: nothing of all this. Bounded:
// at most kElfSymbolsMax symbols and `bytes_max` bytes of tables are read, and what function_bounds.h says. Hostile
// input. Any thread.
absl::StatusOr<SymbolSource> AddElfSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max = 1u << 30);

// All that a file says without debug information: of Go programs what their own table says (symbols/go_pclntab.h), too.
absl::StatusOr<SymbolSource> AddOwnSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max = 1u << 30);

// The same as a table of their own.
absl::StatusOr<std::shared_ptr<const SymbolTable>> ReadElfSymbols(ElfFile& file, const ExecutableId& id,
                                                                  uint64_t bytes_max = 1u << 30);

}  // namespace tributary
