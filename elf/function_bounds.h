#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/unwind_source.h"

namespace tributary {

// Where functions begin and end by a file's exception frames (.eh_frame): they are known of nearly all code, stripped
// or not, and have no names. A part that the compiler moved away (.cold) has bounds of its own, and so has the whole of
// .plt.
struct FunctionBounds {
  std::vector<AddressRange> ranges;  // ascending, one for each begin, in executable segments
  uint64_t bad_entries = 0;          // that could not be parsed
  uint64_t left_out_entries = 0;     // over UnwindSource::kEntriesMax
};

// A file without any is no error. InvalidArgument, Unavailable: the sections lie, or cannot be read. Input is hostile:
// 16 bytes a range, 8 more where the file has no search table of its own; 2 GiB read at most. Thread: any, one at a
// time.
absl::StatusOr<FunctionBounds> FindFunctionBounds(ElfFile& file);

}  // namespace tributary
