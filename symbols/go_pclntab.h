#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/go_table.h"
#include "symbols/go_module.h"
#include "symbols/symbol_builder.h"

namespace tributary {

// Functions, lines and inlined calls from the table that every Go program keeps for its own tracebacks, stripped or not
// (Go 1.13 to 1.26, x86-64 and arm64). elf/go_table.h and symbols/go_inline_calls.h describe the form of each version.
// A function ends where its lines end. A function without lines ends at the next function.
//
// The input may be hostile. An offset out of the table, steps that do not end, and a call that is inlined into itself
// end the data of that one function, and are counted. Limits: 256 MiB of table; 2 M functions; kStepsMax steps in
// total; names and paths of at most twice the table. Memory in addition to the builder's: the table, 8 bytes per step
// of one function, 16 bytes per pointer that the loader writes. Thread: any, one at a time. Borrows the file.
class GoPclntab {
 public:
  static constexpr uint32_t kStepsMax = 16u << 20;

  struct Counts {
    uint64_t functions = 0, inlined = 0;  // inlined: calls, counted per function
    uint64_t malformed = 0;               // functions with data that cannot be read
    uint64_t left_out = 0;                // functions that lack lines or calls because of kStepsMax
    bool trees_known = false;             // false: no call is known to be inlined
  };

  // NotFound if the file is not a Go program, or if the location of its code is unknown.
  static absl::StatusOr<GoPclntab> Open(ElfFile& file);

  // Range of Go's functions.
  AddressRange code() const { return code_; }
  // Data that cannot be read, or that exceeds a limit, counts as left out. Unavailable if the file cannot be read.
  absl::StatusOr<Counts> AddTo(SymbolTableBuilder& builder) const;

 private:
  explicit GoPclntab(ElfFile& file) : file_(&file) {}
  bool Take(const GoTableHeader& header);

  ElfFile* file_;
  GoTableHeader header_;
  GoModule module_;
  AddressRange code_;
};

// Opens and adds in one call. NotFound as in Open().
absl::StatusOr<GoPclntab::Counts> AddGoSymbols(ElfFile& file, SymbolTableBuilder& builder);

}  // namespace tributary
