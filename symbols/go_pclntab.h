#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/go_table.h"
#include "symbols/go_module.h"
#include "symbols/symbol_builder.h"

namespace tributary {

// Functions, lines and inlined calls by the table that every Go program keeps for its own tracebacks, stripped or not
// (Go 1.13 to 1.26, x86-64 and arm64; how each version writes it: elf/go_table.h, symbols/go_inline_calls.h). A
// function ends where its lines do, and where it has none at the next one.
//
// Input is hostile: an offset that leads out of the table, a table of steps that does not end and a call that is
// inlined into itself end what is known of one function, and are counted. Bounds: 256 MiB of table, 2 M functions;
// kStepsMax steps in all, names and paths not longer than twice the table. Memory besides the
// builder's own: the table, 8 bytes a step of one function, 16 a pointer that a loader is to write. Thread: any, one at
// a time. Borrows the file.
class GoPclntab {
 public:
  static constexpr uint32_t kStepsMax = 16u << 20;

  struct Counts {
    uint64_t functions = 0, inlined = 0;  // inlined: calls, by function
    uint64_t malformed = 0;               // functions with something that cannot be read
    uint64_t left_out = 0;                // functions without lines or calls: over kStepsMax
    bool trees_known = false;             // else no call is known to be inlined
  };

  // NotFound: not a Go program, or it is not known where its code is.
  static absl::StatusOr<GoPclntab> Open(ElfFile& file);

  // Where Go's functions are.
  AddressRange code() const { return code_; }
  // What cannot be read and what is over a cap counts as left out. Unavailable: the file cannot be read.
  absl::StatusOr<Counts> AddTo(SymbolTableBuilder& builder) const;

 private:
  explicit GoPclntab(ElfFile& file) : file_(&file) {}
  bool Take(const GoTableHeader& header);

  ElfFile* file_;
  GoTableHeader header_;
  GoModule module_;
  AddressRange code_;
};

// The same at once; NotFound as Open.
absl::StatusOr<GoPclntab::Counts> AddGoSymbols(ElfFile& file, SymbolTableBuilder& builder);

}  // namespace tributary
