#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Returns the ranges of the functions with one of `names`. Uses the table that every Go program keeps for its own
// tracebacks, stripped or not (.gopclntab of Go 1.2 to 1.26; source: Go's debug/gosym and cmd/link). The result is
// empty if there is no such table, or if the code of runtime.goexit is not at the address from the table. This check is
// needed because the table contains offsets from the beginning of Go's text, and since 1.26 not the beginning itself.
//
// The input may be hostile. The table is read once from front to back, with 256 KiB in memory at a time. Limits: 256
// MiB of table, 64 MiB of names, 2 M functions. If no section names the table, 64 MiB of segments are searched for it.
// Time: 1 to 7 ms for a program of 20 MiB, about 1 s for the worst files. Thread: any, one at a time.
std::vector<AddressRange> FindGoFunctions(ElfFile& file, std::span<const std::string_view> names);

}  // namespace tributary
