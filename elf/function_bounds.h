#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/unwind_source.h"

namespace tributary {

// Start and end addresses of functions, from a file's exception frames (.eh_frame). Exception frames cover nearly all
// code, in stripped files too, and have no names. A part of a function that the compiler moved away (.cold) is a range
// of its own. All stubs of .plt together are one range.
struct FunctionBounds {
  std::vector<AddressRange> ranges;  // ascending, one per begin, in executable segments
  uint64_t bad_entries = 0;          // entries that could not be parsed
  uint64_t left_out_entries = 0;     // entries over UnwindSource::kEntriesMax
};

// A file without exception frames is not an error. InvalidArgument, Unavailable: the sections are inconsistent, or
// cannot be read. The input may be hostile. Memory: 16 bytes per range, and 8 more if the file has no search table of
// its own. Reads at most 2 GiB. Thread: any, one at a time.
absl::StatusOr<FunctionBounds> FindFunctionBounds(ElfFile& file);

}  // namespace tributary
