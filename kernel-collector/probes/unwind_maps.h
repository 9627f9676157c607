#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "bpf/include/unwind.h"

namespace tributary {

// The memory that user space and the walk in the kernel share (bpf/include/unwind.h). Spans live as long as this
// object. Use it on the loop thread, unless a method says otherwise.
class UnwindMaps {
 public:
  virtual ~UnwindMaps() = default;

  virtual std::span<uint64_t> rules() = 0;         // TRIB_RULES_MAX
  virtual std::span<uint64_t> pages() = 0;         // page entries, TRIB_PAGES_MAX
  virtual std::span<uint64_t> touches() = 0;       // TRIB_TOUCHES_MAX
  virtual std::span<trib_mapping> mappings() = 0;  // TRIB_MAPPINGS_MAX

  // Call it after page entries have been taken back. Walks that begin later no longer use the page entries that earlier
  // walks remembered.
  virtual void CountWithdrawal() = 0;

  // Adds one chunk of rows and returns its TRIB_CHUNK_ELEMENTS elements; the first call returns chunk 0. Waits 6–9 ms
  // for the kernel. Any thread may call it, but only one at a time. ResourceExhausted: TRIB_CHUNKS_MAX is reached, or
  // the kernel has no memory for it.
  virtual absl::StatusOr<std::span<uint64_t>> AddChunk() = 0;

  // Set and drop the data of one process. Each is one system call, about 1 µs. ResourceExhausted: TRIB_PROCESSES_MAX is
  // reached.
  virtual absl::Status SetProcess(Pid pid, const trib_process& process) = 0;
  virtual void DropProcess(Pid pid) = 0;

  // Waits until every walk has ended that may have seen data taken back before the call. This takes 6–9 ms. Any thread
  // may call it.
  virtual absl::Status WaitGrace() = 0;
};

}  // namespace tributary
