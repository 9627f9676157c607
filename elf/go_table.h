#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "elf/elf_file.h"

namespace tributary {

// The forms of the table that every Go program keeps of its functions, each by the first Go that wrote it. All that is
// said elsewhere of "Go's table" is of these (source: Go's debug/gosym, cmd/link/internal/ld/pcln.go and
// runtime/symtab.go of the versions).
enum class GoTableForm : uint8_t {
  kGo2,   // 1.2 to 1.15: every offset counts from the table's begin
  kGo16,  // 1.16, 1.17: parts, each with an offset in the header
  kGo18,  // 1.18, 1.19: addresses are 32 bits from the begin of Go's text
  kGo20,  // 1.20 to 1.26, the same with one field more a function; since 1.26 the header does not say where text is
};

// Begin of a table and of its parts. Offsets in the file; what lies past `end` is not there, and any of them may.
struct GoTableHeader {
  GoTableForm form = GoTableForm::kGo2;
  uint32_t quantum = 1;  // bytes in which code is counted
  uint64_t begin = 0, end = 0;
  uint64_t functions = 0;  // pairs of address and place in `data`; one address more at the end
  uint64_t count = 0;      // of functions
  uint64_t data = 0;       // what is known of each: its address, then where its name lies in `names`, …
  uint64_t names = 0;      // ended by zeros
  uint64_t names_end = 0;
  uint64_t units = 0;  // of each compilation unit its files: where they lie in `files`; not in kGo2
  uint64_t files = 0;  // ended by zeros; in kGo2 first their number, then where they lie in the table
  uint64_t steps = 0;  // how files, lines and others change within functions
  uint64_t text = 0;   // what addresses are relative to; 0: nothing, or not said

  bool relative() const { return form >= GoTableForm::kGo18; }
  uint64_t field_bytes() const { return relative() ? sizeof(uint32_t) : sizeof(uint64_t); }  // of `functions`
};

// Shows `take` the headers of what may be a file's table, until it returns true: of the section that is called so, or,
// where none is and the file may be Go's (linked by C's linker as an executable that may lie anywhere, the table is a
// part of another section; section headers may be gone), what looks like one in segments. 64-bit tables alone.
// Bounds: 256 MiB of table, 2 M functions; 64 MiB of segments are searched, and two finds looked at.
void FindGoTables(ElfFile& file, const std::function<bool(const GoTableHeader&)>& take);

}  // namespace tributary
