#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "kernel-collector/probes/shared_array.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/probes/window_cache.h"

struct bpf_object;

namespace tributary {

// The UnwindMaps of the loaded sampling program. They use 6.6 MiB of kernel memory from the start, and 8 MiB more for
// each chunk of unwind rows. The parts of it that were written are mapped, and count as resident memory of this
// process: of the rows, 2 MiB at most.
class KernelUnwindMaps : public UnwindMaps {
 public:
  // Borrows the maps of `object`, which must outlive the result.
  static absl::StatusOr<std::unique_ptr<KernelUnwindMaps>> Open(bpf_object* object);

  std::span<uint64_t> rules() override { return rules_.As<uint64_t>(); }
  std::span<uint64_t> pages() override { return pages_.As<uint64_t>(); }
  std::span<uint64_t> touches() override { return touches_.As<uint64_t>(); }
  std::span<trib_mapping> mappings() override { return mappings_.As<trib_mapping>(); }
  bool Access(std::span<const std::byte> part) override;
  void CountWithdrawal() override;
  absl::StatusOr<std::span<uint64_t>> AddChunk() override;
  absl::Status SetProcess(Pid pid, const trib_process& process) override;
  void DropProcess(Pid pid) override;
  std::span<trib_runtime> runtimes() override { return runtimes_.As<trib_runtime>(); }
  absl::Status SetInterpreter(const trib_executable_key& executable, uint32_t runtimes) override;
  void DropInterpreter(const trib_executable_key& executable) override;
  absl::Status WaitGrace() override;

 private:
  static constexpr size_t kRowWindowsMax = 32;

  KernelUnwindMaps(SharedArray rules, SharedArray pages, SharedArray touches, SharedArray mappings,
                   SharedArray runtimes, SharedArray control)
      : rules_(std::move(rules)),
        pages_(std::move(pages)),
        touches_(std::move(touches)),
        mappings_(std::move(mappings)),
        runtimes_(std::move(runtimes)),
        control_(std::move(control)) {}

  SharedArray rules_, pages_, touches_, mappings_, runtimes_, control_;
  std::mutex mutex_;  // of chunks_: any thread may add a chunk
  std::vector<SharedArray> chunks_;
  WindowCache mapped_rows_{kRowWindowsMax};                            // of chunks_
  int row_chunks_fd_ = -1, processes_fd_ = -1, interpreters_fd_ = -1;  // borrowed
  Fd grace_inner_, grace_outer_;  // storing the inner map in the outer one waits for a grace period
};

}  // namespace tributary
