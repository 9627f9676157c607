#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "kernel-collector/processes/resolved_frame.h"

namespace tributary {

// A language runtime inside a process. It identifies the code that it made (a JIT's), or the code with which it runs
// other code (an interpreter's loop). The mappings with such code point to the runtime. Frames in other mappings add no
// cost.
//
// Loop thread only: Find answers from memory. If data must be read from the process first, the runtime's creator reads
// it on a worker, and the sample waits (Found::kLater). A forked process shares its parent's runtime until its mappings
// get their own runtime.
class Runtime {
 public:
  static constexpr size_t kFramesMax = 64;  // per address; the resolver drops the innermost frames above this limit

  struct Query {
    uint64_t address = 0;  // in the process; as used for name lookups (LookupAddress)
    bool is_caller = false;
    MonotonicNs time;  // of the sample: code moves, and addresses are reused
  };
  enum class Found {
    kFrames,   // at least one frame was appended
    kUnknown,  // not this runtime's code: the mapping's file is used, if there is one
    kLater,    // nothing was appended; ask again in a moment
  };

  virtual ~Runtime() = default;

  // Appends the frames of the address to `frames`: the function first, then the functions that were inlined into it.
  // Frames have a kind other than kUnknown. Their executables and names must live as long as the runtime.
  virtual Found Find(const Query& query, std::vector<ResolvedFrame>* frames) const = 0;
};

}  // namespace tributary
