#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "kernel-collector/processes/resolved_frame.h"

namespace tributary {

struct ProcessRun;

// A language runtime inside a process. It resolves addresses in the code that the runtime has generated (a JIT
// compiler), or in the loop with which it interprets other code. Mappings with such code refer to their runtime. Frames
// in other mappings have no additional cost.
//
// Loop thread only. Find does not block: if data of the process must be read first, Find returns Found::kLater and the
// sample waits. The component that created the runtime reads the data on a worker. A forked process shares its parent's
// runtime until its mappings get their own runtime.
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
  // Frames have a kind other than kUnknown. Their executables and names must live until the loop's next turn.
  virtual Found Find(const Query& query, std::vector<ResolvedFrame>* frames) const = 0;
};

// Makes the runtimes that name the code of processes in memory without a file (ProcessRun::generated_code).
class RuntimeMaker {
 public:
  virtual ~RuntimeMaker() = default;
  // Called when a sample of the run first has an address in such memory. Never returns null.
  virtual std::shared_ptr<const Runtime> Make(const ProcessRun& run) = 0;
};

}  // namespace tributary
