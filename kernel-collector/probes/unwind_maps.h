#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "bpf/include/unwind.h"

namespace tributary {

// What user space and the walk in the kernel share (bpf/include/unwind.h), as memory that both see. Spans live as long
// as this object. Loop thread, but where a method says otherwise.
class UnwindMaps {
 public:
  virtual ~UnwindMaps() = default;

  virtual std::span<uint64_t> rules() = 0;         // TRIB_RULES_MAX
  virtual std::span<uint64_t> pages() = 0;         // page entries, TRIB_PAGES_MAX
  virtual std::span<uint64_t> touches() = 0;       // TRIB_TOUCHES_MAX
  virtual std::span<trib_mapping> mappings() = 0;  // TRIB_MAPPINGS_MAX

  // Page entries have been taken back: what walks remember of them is void from the next walk on.
  virtual void CountWithdrawal() = 0;

  // One more chunk of rows, as its TRIB_CHUNK_ELEMENTS elements; the first call gives chunk 0. Waits 6–9 ms for the
  // kernel: any thread, one at a time. ResourceExhausted: TRIB_CHUNKS_MAX, or the kernel has no memory for it.
  virtual absl::StatusOr<std::span<uint64_t>> AddChunk() = 0;

  // A system call each, about 1 µs. ResourceExhausted: TRIB_PROCESSES_MAX.
  virtual absl::Status SetProcess(Pid pid, const trib_process& process) = 0;
  virtual void DropProcess(Pid pid) = 0;

  // Returns when every walk that may have seen what has been taken back before the call is over. 6–9 ms: any thread.
  virtual absl::Status WaitGrace() = 0;
};

}  // namespace tributary
