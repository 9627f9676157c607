#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Returns the address ranges of the functions that have one of `names`. Finds only names that begin with 'r' or '_' and
// have less than 32 bytes. Uses the function table that every Go program contains for its own tracebacks, even if it is
// stripped (.gopclntab of Go 1.2 to 1.26; source: Go's debug/gosym and cmd/link). Since Go 1.18, the table contains
// offsets from the start of Go's code instead of addresses. Since Go 1.26, it does not contain this start itself. So
// FindGoFunctions verifies the start by the code of runtime.goexit, or searches for this code to find the start. The
// result is empty if this code is not found, or if there is no table.
//
// The input may be hostile. The table is read once from front to back, with 256 KiB in memory at a time. Limits: 256
// MiB of table, 64 MiB of names, 2 M functions. If no section has the table's name, 64 MiB of segments are searched for
// the table. Takes 1 to 7 ms for a program of 20 MiB, and about 1 s for the worst files. Any thread may call it, but
// only one thread at a time per file.
std::vector<AddressRange> FindGoFunctions(ElfFile& file, std::span<const std::string_view> names);

}  // namespace tributary
