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
#include "kernel-collector/processes/runtime.h"
#include "profile/model.h"

namespace tributary {

// The addresses of a walked stack, the leaf first in `kernel` and in `user`. They are encoded as in a sample record
// (TRIB_FRAME_INTERRUPTED).
struct RawStack {
  std::span<const uint64_t> kernel, user;
  uint32_t flags = 0;  // trib_flags
  MonotonicNs time;
  bool may_read_names = true;  // false: the process's own names of generated code must not be read
};

struct ResolvedStack {
  std::vector<ResolvedFrame> frames;      // root first: the user frames, then the kernel frames
  size_t outermost_frames = 0;            // number of `frames` of the outermost user address: a runtime may add several
  Ending ending = Ending::kUnknown;       // set by the component that walked the stack
  bool wants_executable = false;          // a file, kallsyms or a runtime must be read first, and will be
  std::vector<uint64_t> uncovered_pages;  // pages of addresses that no mapping covers yet: a mapping may come late
};

// Turns addresses into frames. A frame consists of an executable and an ELF address, or comes from the mapping's
// runtime. Loop thread only; reads no files.
class StackResolver {
 public:
  // `kernel` and `generated_code` must outlive the resolver. If `generated_code` is null, code in memory without a file
  // has only the name of the memory.
  explicit StackResolver(KernelCode& kernel, RuntimeMaker* generated_code = nullptr)
      : kernel_(kernel), generated_code_(generated_code) {}

  // `snapshot` is the run's mapping table at the time of the sample; null: use only the current table. Calls `unread`
  // for each executable of the stack that has not been read. `out` can be reused: then most calls allocate nothing.
  void Resolve(const RawStack& stack, ProcessRun& run, const MappingTable::List* snapshot,
               const std::function<void(const CodeFilePtr&)>& unread, ResolvedStack* out);

 private:
  void AddKernelFrames(const RawStack& stack, ResolvedStack* out);

  KernelCode& kernel_;
  RuntimeMaker* const generated_code_;
};

}  // namespace tributary
