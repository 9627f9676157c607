#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "elf/address_range.h"
#include "elf/elf_file.h"

namespace tributary {

// The rule (bpf/include/unwind.h) in force from `offset`, bytes from the begin of the range asked for, to the next row.
struct UnwindRow {
  uint32_t offset = 0;
  uint64_t rule = 0;

  friend bool operator==(const UnwindRow&, const UnwindRow&) = default;
};

// One executable's unwind information, ready to be compiled to rows range by range: .eh_frame through the search table
// of .eh_frame_hdr; through a table of its own, made by one linear scan, where that is missing (static executables);
// .debug_frame, also compressed, where there is no .eh_frame. x86-64 and arm64. Sources: LSB "Exception Frames", DWARF
// 5 §6.4, the psABIs' register numbers.
//
// Input is hostile: bounded time and memory whatever the bytes say; what cannot be said by rules becomes
// TRIB_RULE_BAD, what has no information TRIB_RULE_NONE. Reads by pread, only what a range needs. Thread: any, one at a
// time.
class UnwindSource {
 public:
  static constexpr uint32_t kRangeBytesMax = 64u << 20;
  static constexpr uint64_t kEntriesMax = 4u << 20;  // FDEs of one file; the rest is not seen and counted
  static constexpr uint64_t kSectionBytesMax = 256u << 20;

  enum class Kind { kNone, kEhFrame, kDebugFrame };

  // Takes over `file`. InvalidArgument: the unwind sections lie about themselves. A file without any is no error.
  static absl::StatusOr<std::unique_ptr<UnwindSource>> Open(std::unique_ptr<ElfFile> file);
  virtual ~UnwindSource() = default;

  virtual Kind kind() const = 0;
  // From the lowest to the highest address of executable segments; empty without any.
  virtual AddressRange text() const = 0;
  // Ranges of functions that start a thread or a process, found by entry point and by a closed list of names (_start,
  // clone, clone3, runtime.goexit, …) of symbols or of Go's own function table, sorted. A chain of frame pointers that
  // ends in one is complete.
  virtual const std::vector<AddressRange>& starts() const = 0;

  // Rows of [begin, end), at most kRangeBytesMax long: the first has offset 0, neighbours differ. Gaps between
  // functions under 16 bytes (padding) go to the function before. InvalidArgument, Unavailable: the file changed under
  // the reader, or lies.
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
