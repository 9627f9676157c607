#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// An unwind rule (bpf/include/unwind.h), which is valid from `offset` up to the next row. `offset` is in bytes from the
// start of the compiled range.
struct UnwindRow {
  uint32_t offset = 0;
  uint64_t rule = 0;

  friend bool operator==(const UnwindRow&, const UnwindRow&) = default;
};

// The unwind information of one executable. Compile converts it to rows, for one address range after the other. Uses
// .eh_frame with the search table in .eh_frame_hdr. If this table is missing (in static executables), scans .eh_frame
// once to make a table. If there is no .eh_frame, uses .debug_frame, which may be compressed. Supports x86-64 and
// arm64. Sources: LSB "Exception Frames", DWARF 5 §6.4, the psABIs' register numbers.
//
// The input may be hostile: time and memory are limited for all files. Code gets the rule TRIB_RULE_BAD if no rule can
// express its unwind information, and TRIB_RULE_NONE if it has no unwind information. Reads by pread, and only the
// bytes that a range needs. Any thread may use an object, but only one thread at a time.
class UnwindSource {
 public:
  static constexpr uint32_t kRangeBytesMax = 64u << 20;
  static constexpr uint64_t kEntriesMax = 4u << 20;  // limit of FDEs in one file; further FDEs are ignored and counted
  static constexpr uint64_t kSectionBytesMax = 256u << 20;

  enum class Kind { kNone, kEhFrame, kDebugFrame };

  // Takes over `file`. InvalidArgument if the unwind sections are inconsistent. A file without unwind sections is not
  // an error.
  static absl::StatusOr<std::unique_ptr<UnwindSource>> Open(std::unique_ptr<ElfFile> file);
  virtual ~UnwindSource() = default;

  virtual Kind kind() const = 0;
  // Returns the range from the lowest to the highest address of executable segments. It is empty if there are no such
  // segments.
  virtual AddressRange text() const = 0;
  // Returns the sorted address ranges of functions that start a thread or a process (thread_starts.h). They are found
  // by the entry point, and by a fixed list of names (_start, clone, clone3, runtime.goexit, …) in the symbols or in
  // Go's own function table. If a chain of frame pointers ends in such a function, the stack is complete.
  virtual const std::vector<AddressRange>& starts() const = 0;

  // Compiles the rows of `range`, which may have at most kRangeBytesMax bytes. The first row has offset 0, and
  // neighbours have different rules. A gap of less than 16 bytes between two functions (padding) gets the last rule of
  // the function before it. InvalidArgument if the file is inconsistent, or became shorter while it was read. Returns
  // the errors of ErrnoStatus (base/status.h) if the file cannot be read.
  virtual absl::Status Compile(AddressRange range, std::vector<UnwindRow>* rows) = 0;

  struct Counts {
    uint64_t entries = 0;           // FDEs that were used
    uint64_t bad_entries = 0;       // FDEs that could not be parsed
    uint64_t left_out_entries = 0;  // FDEs over kEntriesMax
    uint64_t unsupported_rows = 0;  // rows that became TRIB_RULE_BAD
  };
  virtual const Counts& counts() const = 0;
};

}  // namespace tributary
