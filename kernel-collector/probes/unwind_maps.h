#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "bpf/include/runtimes.h"
#include "bpf/include/unwind.h"

namespace tributary {

// The BPF maps with which user space passes data to the stack walk in the kernel (bpf/include/unwind.h). The spans are
// valid as long as this object. Elements are 0 until they are written. Use it on the loop thread, unless a method says
// otherwise.
class UnwindMaps {
 public:
  virtual ~UnwindMaps() = default;

  virtual std::span<uint64_t> rules() = 0;         // TRIB_RULES_MAX
  virtual std::span<uint64_t> pages() = 0;         // page entries, TRIB_PAGES_MAX
  virtual std::span<uint64_t> touches() = 0;       // TRIB_TOUCHES_MAX
  virtual std::span<trib_mapping> mappings() = 0;  // TRIB_MAPPINGS_MAX
  // Call it before elements of rules(), pages() or mappings() are written for the first time, and each time before
  // elements of a chunk are read or written. `part` lies within one of these spans, and in a chunk has at most
  // kAccessBytesMax bytes. Elements of a chunk stay accessible until the next call for a chunk, so do not use others.
  // Returns false if the system has no memory for it. Takes about 30 ns if the elements were used before, and 10 µs for
  // each 64 KiB otherwise.
  static constexpr size_t kAccessBytesMax = 64u << 10;
  [[nodiscard]] virtual bool Access(std::span<const std::byte> part) = 0;

  // Call it after page entries were set to "not loaded" (withdrawn). Each CPU caches the rules that its walks found
  // last. Walks that begin after this call do not use rules that were cached before.
  virtual void CountWithdrawal() = 0;

  // Adds one chunk of rows and returns its TRIB_CHUNK_ELEMENTS elements; the first call returns chunk 0. Blocks for 6–9
  // ms. Any thread may call it, but only one at a time. ResourceExhausted: TRIB_CHUNKS_MAX is reached, or the kernel
  // has no memory for it.
  virtual absl::StatusOr<std::span<uint64_t>> AddChunk() = 0;

  // SetProcess sets and DropProcess removes the data of one process. Each makes one system call, about 1 µs.
  // ResourceExhausted: TRIB_PROCESSES_MAX is reached.
  virtual absl::Status SetProcess(Pid pid, const trib_process& process) = 0;
  virtual void DropProcess(Pid pid) = 0;

  // Layouts of language runtimes, TRIB_RUNTIMES_MAX elements (bpf/include/runtimes.h). Always accessible. An element
  // must be complete before a process or an executable refers to it. WaitGrace must be called between the last
  // reference's removal and the next use of the element.
  virtual std::span<trib_runtime> runtimes() = 0;
  // SetInterpreter says which runtimes a process with this executable has (TRIB_PROCESS_RUNTIMES), as long as the
  // process itself is not set. Each function makes one system call, about 1 µs. ResourceExhausted:
  // TRIB_INTERPRETERS_MAX is reached.
  virtual absl::Status SetInterpreter(const trib_executable_key& executable, uint32_t runtimes) = 0;
  virtual void DropInterpreter(const trib_executable_key& executable) = 0;

  // Waits for a grace period: until all walks have ended that may still use data withdrawn before the call. Blocks for
  // 6–9 ms. Any thread may call it.
  virtual absl::Status WaitGrace() = 0;
};

}  // namespace tributary
