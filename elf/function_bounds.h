#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/unwind_source.h"

namespace tributary {

// Begins and ends of functions, from a file's exception frames (.eh_frame). The frames cover nearly all code, stripped
// or not, and have no names. A part that the compiler moved away (.cold) has its own bounds. The whole of .plt also has
// bounds of its own.
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
