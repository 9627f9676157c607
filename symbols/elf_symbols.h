#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"
#include "symbols/symbol_builder.h"

namespace tributary {

constexpr size_t kElfSymbolsMax = 4'000'000;

// Adds the function symbols of .symtab (if it has none: of .gnu_debugdata) and of .dynsym. These are all defined
// symbols in executable segments of the types STT_FUNC and STT_GNU_IFUNC. Symbols of type STT_NOTYPE in executable
// sections are added if they have a size. A symbol of size 0 extends to the next symbol, or to the end of its section.
// If several symbols have the same address, a symbol with a size is preferred, then GLOBAL before WEAK before LOCAL,
// then .symtab before .dynsym. Ignores the mapping symbols of arm64 ($x, $d). For a relocatable file, addresses are as
// in elf/module_layout.h. If the file is not relocatable, code without a symbol gets functions without a name, from
// .eh_frame (elf/function_bounds.h). NotFound if the file has none of these. Limits: kElfSymbolsMax symbols,
// `bytes_max` bytes of tables, and the limits of elf/function_bounds.h. The input may be hostile. Any thread may call
// it.
absl::StatusOr<SymbolSource> AddElfSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max = 1u << 30);

// Adds all symbols of a file except those in its debug information: the symbols of AddElfSymbols(), and for a Go
// program its own table (symbols/go_pclntab.h).
absl::StatusOr<SymbolSource> AddOwnSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max = 1u << 30);

// Like AddOwnSymbols(), but returns a new symbol table.
absl::StatusOr<std::shared_ptr<const SymbolTable>> ReadElfSymbols(ElfFile& file, const ExecutableId& id,
                                                                  uint64_t bytes_max = 1u << 30);

}  // namespace tributary
