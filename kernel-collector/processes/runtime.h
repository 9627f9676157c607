#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "kernel-collector/processes/resolved_frame.h"

namespace tributary {

// A language runtime inside a process: says what the code is that it made (a JIT's), or that it runs other code with
// (an interpreter's loop). The mappings with such code point to it; a stack's other frames cost it nothing.
//
// Loop thread only: Find answers from memory. What must be read from the process first is read on a worker, by whoever
// made the runtime, and the sample waits (Found::kLater). A forked process shares its parent's runtime until its
// mappings get one of their own.
class Runtime {
 public:
  static constexpr size_t kFramesMax = 64;  // of one address; the resolver drops the innermost ones over it

  struct Query {
    uint64_t address = 0;  // in the process; as names are looked up (LookupAddress)
    bool is_caller = false;
    MonotonicNs time;  // of the sample: code moves, and its place is used again
  };
  enum class Found {
    kFrames,   // at least one frame was appended
    kUnknown,  // not this runtime's code: the mapping's file counts, if there is one
    kLater,    // nothing was appended; worth asking again in a moment
  };

  virtual ~Runtime() = default;

  // Appends what the address is to `frames`, the function first, then what was inlined into it. Frames have a kind
  // other than kUnknown. Their executables and names must live as long as the runtime.
  virtual Found Find(const Query& query, std::vector<ResolvedFrame>* frames) const = 0;
};

}  // namespace tributary
