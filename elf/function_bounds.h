#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/unwind_source.h"

namespace tributary {

// Start and end addresses of functions, from a file's exception frames (.eh_frame). Exception frames cover nearly all
// code, even in stripped files, but they contain no names. If the compiler has moved a part of a function to another
// address (.cold), this part is a separate range. All stubs of .plt together are one range.
struct FunctionBounds {
  std::vector<AddressRange> ranges;  // in ascending order, without equal begins, in executable segments
  uint64_t bad_entries = 0;          // entries that could not be parsed
  uint64_t left_out_entries = 0;     // entries over UnwindSource::kEntriesMax
};

// The result is empty if the file has no exception frames. InvalidArgument if the sections are inconsistent. Returns
// the errors of ErrnoStatus (base/status.h) if they cannot be read. The input may be hostile. Needs 16 bytes of memory
// per range, and 8 bytes more if the file has no search table (.eh_frame_hdr). Reads at most 2 GiB. Any thread may call
// it, but only one thread at a time per file.
absl::StatusOr<FunctionBounds> FindFunctionBounds(ElfFile& file);

}  // namespace tributary
