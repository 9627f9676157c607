#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "base/types.h"
#include "kernel-collector/probes/pinned_session.h"
#include "kernel-collector/probes/sample_record.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "profile/executable_id.h"
#include "profile/model.h"

namespace tributary {

// Events of processes and of kernel code, from the perf sideband (a dummy event per CPU with mmap2, comm, task, ksymbol
// and, from Linux 5.12 on, build_id; clock CLOCK_MONOTONIC). Views are valid during the callback only. Source:
// perf_event_open(2), include/uapi/linux/perf_event.h.
struct MmapEvent {
  MonotonicNs time;
  Pid pid;
  Tid tid;
  uint64_t start = 0, length = 0, file_offset = 0;
  // The kernel reports either the build-id or device and inode. So device and inode are 0 if build_id is known.
  ExecutableId build_id;  // kNone: not reported
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;
  bool executable = false;
  std::string_view path;  // "/usr/lib/…", "[vdso]", "//anon", "/memfd:x (deleted)"
};
struct ForkEvent {  // a new process, or a new thread if pid == parent
  MonotonicNs time;
  Pid pid, parent;
  Tid tid, parent_tid;
};
struct CommEvent {
  MonotonicNs time;
  Pid pid;
  Tid tid;
  bool exec = false;  // this comm comes from an execve
  std::string_view comm;
};
struct ExitEvent {
  MonotonicNs time;
  Pid pid;
  Tid tid;
};
// Kernel code without a file was added or removed: a BPF program or trampoline, or code of ftrace or kprobes (Linux
// 5.9). New code is reported before it can run. Removed code may run for a moment longer.
struct KernelCodeEvent {
  MonotonicNs time;
  uint64_t start = 0, length = 0;
  bool is_bpf = false;
  bool gone = false;
  std::string_view name;  // "bpf_prog_6deef7357e7b4530_sd_fw_egress", "ftrace_trampoline"
};
// A cgroup was created (Linux 5.7), in the hierarchy with the controller perf_event. This is the unified hierarchy,
// unless a v1 hierarchy has the controller.
struct CgroupEvent {
  MonotonicNs time;
  uint64_t id = 0;  // as samples carry it
  std::string_view path;
};
struct LostEvent {  // a CPU's sideband overran: mappings of any process and the kernel's code may be stale
  uint64_t events = 0;
};

class SidebandVisitor {
 public:
  virtual ~SidebandVisitor() = default;
  virtual void OnMmap(const MmapEvent& event) = 0;
  virtual void OnFork(const ForkEvent& event) = 0;
  virtual void OnComm(const CommEvent& event) = 0;
  virtual void OnExit(const ExitEvent& event) = 0;
  virtual void OnKernelCode(const KernelCodeEvent& event) = 0;
  virtual void OnCgroup(const CgroupEvent& event) = 0;
  virtual void OnLost(const LostEvent& event) = 0;
};

struct ProbeOptions {
  uint32_t sample_rate_hz = 19;
  // Seconds of samples that the ring can hold if user space does not read it: size = next power of two of rate × CPUs ×
  // 1 KiB × this.
  uint32_t ring_seconds = 2;
  // Size of the ring of stack copies; 0 = 128 KiB per CPU, at least 512 KiB: seven copies of the largest kind.
  uint32_t copies_bytes = 0;
  uint32_t contexts = 1;         // number of contexts that programs run in: the first ones of enum trib_context
  bool idle = false;             // for tests: ticks in the idle task are samples too
  std::string_view object = {};  // another sampling program, for tests; empty = the built-in one. Borrowed during Open
};

// The BPF programs, their perf events, the ring buffer and the sideband. Owned by the collector's loop thread. Only
// StartSampling, SetPeriod and some methods of UnwindMaps wait, as their comments say. The caller must read the samples
// first, then the sideband. The event of a mapping is written before its code can run, so the sideband then holds all
// events that the samples need.
class Probes {
 public:
  // FailedPrecondition / PermissionDenied / Unimplemented: one sentence each that says what is missing (privilege, BTF,
  // kernel version, perf_event) and what to do.
  static absl::StatusOr<std::unique_ptr<Probes>> Open(const ProbeOptions& options, Metrics& metrics);
  // Opens and closes an event, as for a CPU that comes online. PermissionDenied if the calling thread may not open it.
  static absl::Status TryEvent();
  virtual ~Probes() = default;

  // The sideband runs from Open on. Starts sampling on every online CPU, with the phases spread over one period. Takes
  // one period, or a few on a busy machine. Call it once.
  virtual absl::Status StartSampling() = 0;
  // After the return, no program is entered any more. The records in the ring stay readable. The sideband continues.
  virtual void StopSampling() = 0;

  // Passes every record now in the rings to `visit`: samples, then samples with a copy of the stack, each oldest first
  // per CPU. `record` is whole and checked against its size. Other records count as lost{bad_record}. Returns the
  // number of records.
  virtual size_t DrainSamples(const std::function<void(const SampleRecord& record)>& visit) = 0;
  // Passes every readable sideband record of all CPUs to `visitor`, in order of time.
  virtual void DrainSideband(SidebandVisitor& visitor) = 0;
  // Opens the events of CPUs that came online since the last call, and closes those of CPUs that went offline. Called
  // every few seconds.
  virtual void FollowHotplug() = 0;

  // Totals since Open, summed over CPUs: captured, idle, the losses that the kernel side counts, and bad_record.
  virtual Accounting ReadAccounting() = 0;
  virtual bool has_build_ids() const = 0;

  // The data of processes and their code for the walk in the kernel.
  virtual UnwindMaps& unwind_maps() = 0;
  // The data that outlives this process if it is killed, and the data that earlier processes left. Lives as long as
  // this object. Finish should be called before this object is destroyed.
  virtual PinnedSession& pinned_session() = 0;
  // Returns a descriptor for epoll. It is readable when a ring fills faster than the timer empties it. The caller
  // should then drain samples and sideband soon: after that it is no longer readable.
  virtual int wakeup_fd() const = 0;
  // Sets another sampling period. Every CPU begins a new period. Samples contain the period that they were taken with.
  // Makes a few system calls per CPU, and spreads them over at most 2 ms.
  virtual absl::Status SetPeriod(uint64_t period_ns) = 0;
  // Returns the time spent in the sampling program since Open, on all CPUs.
  virtual uint64_t ReadRunNs() = 0;
};

}  // namespace tributary
