#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

struct SymbolPlace {
  uint64_t address = 0;
  uint64_t size = 0;  // 0: unknown
};

// Finds symbols that a file defines, by their exact names. The result has an element for each name. First uses the hash
// table of the dynamic symbols (.gnu.hash), or reads the dynamic symbols if there is no such table. Then it looks for
// the missing names in .symtab, but only if .symtab contains the first name. So a file without the first name costs a
// few reads, and a search in the names of .symtab. InvalidArgument if a table is malformed. The input may be hostile.
// Limits: kLookupDynamicSymbolsMax symbols without a hash table, kLookupNameBytesMax bytes of names and
// kLookupSymbolsMax symbols in .symtab; symbols beyond them are not found. Uses some 300 KiB of memory. Any thread may
// call it, but only one thread at a time per file.
constexpr uint64_t kLookupDynamicSymbolsMax = 64u << 10;
constexpr uint64_t kLookupNameBytesMax = 64u << 20;
constexpr uint64_t kLookupSymbolsMax = 4u << 20;
absl::StatusOr<std::vector<std::optional<SymbolPlace>>> LookUpSymbols(ElfFile& file,
                                                                      std::span<const std::string_view> names);

}  // namespace tributary
