#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {

// Returns the address ranges of the functions that start a thread or a process, sorted and without duplicates. Finds
// them by the entry point, and by a fixed list of function names in the symbols. If the symbols do not contain Go's
// start functions, uses Go's own function table (go_functions.h). `function_at` returns the range of the function at an
// address, from unwind information. If neither the symbol nor `function_at` has the size of a function, its size counts
// as 64 bytes. If the file cannot be read or has no symbols, returns the functions found until then. Reads .symtab once
// (at most 4 M symbols). If there is no .symtab, reads .dynsym once, unless it has more than 16 K symbols.
std::vector<AddressRange> FindThreadStarts(ElfFile& file,
                                           const std::function<std::optional<AddressRange>(uint64_t)>& function_at);

}  // namespace tributary
