#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"
#include "symbols/symbol_builder.h"

namespace tributary {

constexpr size_t kElfSymbolsMax = 4'000'000;

// Adds function symbols of .symtab (of .gnu_debugdata, if .symtab is stripped) and of .dynsym. Takes STT_FUNC and
// STT_GNU_IFUNC (and sized STT_NOTYPE in executable sections) that are defined and lie in an executable segment. A
// symbol of size 0 extends to the next symbol or to the end of its section. Of aliases, prefers a symbol with a size,
// then GLOBAL before WEAK before LOCAL, then .symtab before .dynsym. Leaves out arm64's $x/$d markers. The addresses of
// a relocatable file are those of elf/module_layout.h. Code without a symbol gets functions without a name, from the
// bounds in .eh_frame. NotFound if the file has none of these. Limits: at most kElfSymbolsMax symbols and `bytes_max`
// bytes of tables, and those of function_bounds.h. The input may be hostile. Thread: any.
absl::StatusOr<SymbolSource> AddElfSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max = 1u << 30);

// Adds all symbols that a file contains except those in debug information: the symbols of AddElfSymbols(), and a Go
// program's own table (symbols/go_pclntab.h).
absl::StatusOr<SymbolSource> AddOwnSymbols(ElfFile& file, SymbolTableBuilder& builder, uint64_t bytes_max = 1u << 30);

// Like AddOwnSymbols(), but builds a separate table.
absl::StatusOr<std::shared_ptr<const SymbolTable>> ReadElfSymbols(ElfFile& file, const ExecutableId& id,
                                                                  uint64_t bytes_max = 1u << 30);

}  // namespace tributary
