#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "elf/elf_file.h"

namespace tributary {

// Forms of the table that every Go program keeps of its functions, each named after the first Go version that wrote it.
// "Go's table" elsewhere means one of these forms (source: Go's debug/gosym, cmd/link/internal/ld/pcln.go and
// runtime/symtab.go of the versions).
enum class GoTableForm : uint8_t {
  kGo2,   // 1.2 to 1.15: every offset counts from the table's begin
  kGo16,  // 1.16, 1.17: parts, each with an offset in the header
  kGo18,  // 1.18, 1.19: addresses are 32 bits from the begin of Go's text
  kGo20,  // 1.20 to 1.26: one more field per function; since 1.26 the header lacks the begin of the text
};

// Where a table and its parts begin, as offsets in the file. Any offset may lie past `end`; there is no data past
// `end`.
struct GoTableHeader {
  GoTableForm form = GoTableForm::kGo2;
  uint32_t quantum = 1;  // unit in which code is counted, in bytes
  uint64_t begin = 0, end = 0;
  uint64_t functions = 0;  // pairs of an address and a place in `data`; one more address at the end
  uint64_t count = 0;      // number of functions
  uint64_t data = 0;       // per function: its address, then the offset of its name in `names`, …
  uint64_t names = 0;      // zero-terminated
  uint64_t names_end = 0;
  uint64_t units = 0;  // per compilation unit the offsets of its files in `files`; not in kGo2
  uint64_t files = 0;  // zero-terminated; in kGo2 first the number of files, then their offsets in the table
  uint64_t steps = 0;  // how files, lines and other values change within functions
  uint64_t text = 0;   // base of relative addresses; 0: no base, or not stated

  bool relative() const { return form >= GoTableForm::kGo18; }
  uint64_t field_bytes() const { return relative() ? sizeof(uint32_t) : sizeof(uint64_t); }  // in `functions`
};

// Passes the headers of possible tables to `take` until `take` returns true. Looks for the section with the table's
// name. If there is none and the file may be Go's, searches the segments for bytes that look like a table: in a
// position-independent executable from C's linker the table is a part of another section, and section headers may be
// missing. Only 64-bit tables. Limits: 256 MiB of table, 2 M functions; searches 64 MiB of segments and tries two
// candidates.
void FindGoTables(ElfFile& file, const std::function<bool(const GoTableHeader&)>& take);

}  // namespace tributary
