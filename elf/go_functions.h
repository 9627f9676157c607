#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// Ranges of the functions with one of `names` by the table that every Go program keeps for its own tracebacks, stripped
// or not (.gopclntab, of Go 1.2 to 1.26; source: Go's debug/gosym and cmd/link). Empty when there is no such table, or
// when the code of runtime.goexit is not where the table says: the table tells offsets from the begin of Go's text,
// and since 1.26 not where that is.
//
// Input is hostile: the table is read once from front to back, 256 KiB in memory at a time. Bounds: 256 MiB of table,
// 64 of names, 2 M functions; where no section names the table, 64 MiB of segments are searched for it. Time: 1 to 7 ms
// for a program of 20 MiB, about 1 s for the worst of files. Thread: any, one at a time.
std::vector<AddressRange> FindGoFunctions(ElfFile& file, std::span<const std::string_view> names);

}  // namespace tributary
