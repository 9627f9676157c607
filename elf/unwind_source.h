#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// The rule (bpf/include/unwind.h) that applies from `offset` up to the next row. `offset` is in bytes from the begin of
// the requested range.
struct UnwindRow {
  uint32_t offset = 0;
  uint64_t rule = 0;

  friend bool operator==(const UnwindRow&, const UnwindRow&) = default;
};

// Unwind information of one executable, to be compiled to rows range by range. Uses .eh_frame through the search table
// of .eh_frame_hdr. If that table is missing (static executables), builds a table by one linear scan. If there is no
// .eh_frame, uses .debug_frame, also compressed. Supports x86-64 and arm64. Sources: LSB "Exception Frames", DWARF 5
// §6.4, the psABIs' register numbers.
//
// The input may be hostile: time and memory are bounded whatever the bytes contain. Code that rules cannot express
// becomes TRIB_RULE_BAD. Code without information becomes TRIB_RULE_NONE. Reads by pread, and only the bytes that a
// range needs. Thread: any, one at a time.
class UnwindSource {
 public:
  static constexpr uint32_t kRangeBytesMax = 64u << 20;
  static constexpr uint64_t kEntriesMax = 4u << 20;  // FDEs of one file; further ones are ignored and counted
  static constexpr uint64_t kSectionBytesMax = 256u << 20;

  enum class Kind { kNone, kEhFrame, kDebugFrame };

  // Takes over `file`. InvalidArgument if the unwind sections are inconsistent. A file without unwind sections is not
  // an error.
  static absl::StatusOr<std::unique_ptr<UnwindSource>> Open(std::unique_ptr<ElfFile> file);
  virtual ~UnwindSource() = default;

  virtual Kind kind() const = 0;
  // Returns the range from the lowest to the highest address of executable segments. Empty without such segments.
  virtual AddressRange text() const = 0;
  // Returns the sorted ranges of functions that start a thread or a process. They are found by the entry point and by a
  // fixed list of names (_start, clone, clone3, runtime.goexit, …) among symbols or in Go's own function table. A chain
  // of frame pointers that ends in such a function is complete.
  virtual const std::vector<AddressRange>& starts() const = 0;

  // Compiles the rows of `range`, which is at most kRangeBytesMax long. The first row has offset 0, and neighbours
  // differ. Gaps under 16 bytes between functions (padding) belong to the function before. InvalidArgument,
  // Unavailable: the file changed during the read, or is inconsistent.
  virtual absl::Status Compile(AddressRange range, std::vector<UnwindRow>* rows) = 0;

  struct Counts {
    uint64_t entries = 0;           // FDEs run
    uint64_t bad_entries = 0;       // FDEs that could not be parsed
    uint64_t left_out_entries = 0;  // FDEs over kEntriesMax
    uint64_t unsupported_rows = 0;  // rows that became TRIB_RULE_BAD
  };
  virtual const Counts& counts() const = 0;
};

}  // namespace tributary
