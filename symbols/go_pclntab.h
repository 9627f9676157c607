#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/go_table.h"
#include "symbols/go_module.h"
#include "symbols/symbol_builder.h"

namespace tributary {

// Functions, lines and inlined calls from Go's table (.gopclntab), which every Go program contains for its own
// tracebacks, even if it is stripped. Supports Go 1.13 to 1.26 on x86-64 and arm64. elf/go_table.h and
// symbols/go_inline_calls.h describe the format of each version. A function ends where its lines end. A function
// without lines ends at the next function.
//
// The input may be hostile. If an offset is outside of the table, if steps do not end, or if a call is inlined into
// itself, the affected part of the function's data is ignored, and the function is counted as malformed. Limits: a
// table of 256 MiB, 2 M functions, kStepsMax steps in total, and names and paths of at most twice the table's size.
// Needs memory for the table, 8 bytes per step of one function, and 16 bytes per pointer that the loader writes, in
// addition to the builder's memory. Any thread may use an object, but only one thread at a time. Borrows the file.
class GoPclntab {
 public:
  static constexpr uint32_t kStepsMax = 16u << 20;

  struct Counts {
    uint64_t functions = 0, inlined = 0;  // inlined: the sum over all functions of their inlined calls
    uint64_t malformed = 0;               // functions with data that could not be read
    uint64_t left_out = 0;                // functions that have no lines or calls because of kStepsMax
    bool trees_known = false;             // false: the trees of inlined calls were not found
  };

  // NotFound if the file is not a Go program, or if the location of its code is unknown.
  static absl::StatusOr<GoPclntab> Open(ElfFile& file);

  // Returns the address range of Go's functions.
  AddressRange code() const { return code_; }
  // Adds everything to `builder`. Skips and counts data that is malformed or exceeds a limit. Returns the errors of
  // ElfFile::ReadAt if the file cannot be read.
  absl::StatusOr<Counts> AddTo(SymbolTableBuilder& builder) const;

 private:
  explicit GoPclntab(ElfFile& file) : file_(&file) {}
  bool Take(const GoTableHeader& header);

  ElfFile* file_;
  GoTableHeader header_;
  GoModule module_;
  AddressRange code_;
};

// Calls Open() and AddTo(). Returns their errors.
absl::StatusOr<GoPclntab::Counts> AddGoSymbols(ElfFile& file, SymbolTableBuilder& builder);

}  // namespace tributary
