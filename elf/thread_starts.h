#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {

// Returns the functions that start a thread or a process, found by the entry point and by symbols from a fixed list of
// names. The result is sorted, without duplicates. `function_at` returns the function at an address, from unwind
// information. If neither the symbol nor `function_at` gives a function's size, the function counts as 64 bytes long.
// If the file cannot be read or has no symbols, returns the functions found so far. Time: one pass over .symtab (at
// most 4 M symbols). If .symtab is stripped, one pass over .dynsym, unless it has over 16 K symbols. If no symbol names
// Go's start functions, uses Go's own function table (go_functions.h).
std::vector<AddressRange> FindThreadStarts(ElfFile& file,
                                           const std::function<std::optional<AddressRange>(uint64_t)>& function_at);

}  // namespace tributary
