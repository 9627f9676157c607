#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {

// Functions that start a thread or a process, by entry point and by symbols of a closed list of names; sorted, each
// once. `function_at`: the function that unwind information knows at an address; what it does not know and has no size
// is taken for 64 bytes long. A file that cannot be read or has no symbols gives what could be found. Time: one pass
// over .symtab (4 M symbols at most), or .dynsym (unless over 16 K) where that is stripped. Where no symbol names Go's,
// its own function table does (go_functions.h).
std::vector<AddressRange> FindThreadStarts(ElfFile& file,
                                           const std::function<std::optional<AddressRange>(uint64_t)>& function_at);

}  // namespace tributary
