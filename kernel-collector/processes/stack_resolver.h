#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bpf/include/records.h"
#include "kernel-collector/processes/kernel_code.h"
#include "kernel-collector/processes/mapping_table.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/resolved_frame.h"
#include "profile/model.h"

namespace tributary {

// A stack as it was walked: both halves leaf first, addresses as in a record (TRIB_FRAME_INTERRUPTED).
struct RawStack {
  std::span<const uint64_t> kernel, user;
  uint32_t flags = 0;  // trib_flags
  MonotonicNs time;
};

struct ResolvedStack {
  std::vector<ResolvedFrame> frames;  // root first: the kernel's half sits on top of the user's
  size_t outermost_frames = 0;        // of `frames`: of the outermost user address, which a runtime may make several
  Ending ending = Ending::kUnknown;   // set by who walked it
  bool wants_executable = false;      // a file, kallsyms or a runtime must be read first, and will be
  std::vector<uint64_t> uncovered_pages;  // of addresses that no mapping covers, and that may only be late
};

// Turns addresses into frames: (executable, ELF address), or what the mapping's runtime says. Loop thread only; reads
// nothing.
class StackResolver {
 public:
  // `kernel` outlives it.
  explicit StackResolver(KernelCode& kernel) : kernel_(kernel) {}

  // `snapshot` is the run's table when the sample came (null: only its present one counts). Calls `unread` for each
  // executable that was touched and has not been read. `out` is reused: a sample allocates nothing.
  void Resolve(const RawStack& stack, const ProcessRun& run, const MappingTable::List* snapshot,
               const std::function<void(const CodeFilePtr&)>& unread, ResolvedStack* out);

 private:
  void AddKernelFrames(const RawStack& stack, ResolvedStack* out);

  KernelCode& kernel_;
};

}  // namespace tributary
