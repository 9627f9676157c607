#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "elf/elf_file.h"

namespace tributary {

// The formats of the function table (.gopclntab) that every Go program contains. Other comments call this table "Go's
// table". Each format is named after the first Go version that wrote it. Source: Go's debug/gosym,
// cmd/link/internal/ld/pcln.go and runtime/symtab.go of these versions.
enum class GoTableForm : uint8_t {
  kGo2,   // 1.2 to 1.15: all offsets are from the start of the table
  kGo16,  // 1.16, 1.17: the header has the offsets of several smaller tables
  kGo18,  // 1.18, 1.19: addresses are 32-bit offsets from the start of Go's code
  kGo20,  // 1.20 to 1.26: one more field per function; in 1.26 the header has no start of the code
};

// The location of a Go table in the file. The members begin, end, functions, data, names, units, files and steps are
// offsets in the file. In a hostile file, any of them may be larger than `end`. Readers must not read data after `end`.
struct GoTableHeader {
  GoTableForm form = GoTableForm::kGo2;
  uint32_t quantum = 1;  // unit of differences between addresses, in bytes
  uint64_t begin = 0, end = 0;
  uint64_t functions = 0;  // pairs of an address and an offset from `data`; at the end one more address
  uint64_t count = 0;      // number of functions
  uint64_t data = 0;       // for each function: its address, then the offset of its name from `names`, …
  uint64_t names = 0;      // zero-terminated names of functions
  uint64_t names_end = 0;
  uint64_t units = 0;  // for each compilation unit the offsets of its files from `files`; not in kGo2
  uint64_t files = 0;  // zero-terminated file names; in kGo2 the number of files, then their names' offsets
  uint64_t steps = 0;  // changes of files, lines and other values within functions
  uint64_t text = 0;   // address of the start of Go's code; 0: not needed, or unknown

  bool relative() const { return form >= GoTableForm::kGo18; }
  uint64_t field_bytes() const {
    return relative() ? sizeof(uint32_t) : sizeof(uint64_t);
  }  // of the numbers in `functions`
};

// Calls `take` with the header of each possible table, until `take` returns true. First uses the section with the
// table's name. If there is no such section and the file may be a Go program, searches the segments for bytes that look
// like a table. This is necessary if the section headers are missing, and for position-independent executables from a C
// linker, where the table is inside another section. Finds only 64-bit tables. Limits: a table of 256 MiB, 2 M
// functions, a search of 64 MiB, two candidates.
void FindGoTables(ElfFile& file, const std::function<bool(const GoTableHeader&)>& take);

}  // namespace tributary
