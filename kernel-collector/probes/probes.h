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

// What the kernel tells of processes and of its own code, from the perf sideband (a dummy event per CPU with mmap2,
// comm, task, ksymbol and, from Linux 5.12 on, build_id; clock CLOCK_MONOTONIC). Views are valid during the callback
// only. Source: perf_event_open(2), include/uapi/linux/perf_event.h.
struct MmapEvent {
  MonotonicNs time;
  Pid pid;
  Tid tid;
  uint64_t start = 0, length = 0, file_offset = 0;
  ExecutableId build_id;                        // kNone where the kernel gives none
  uint32_t device_major = 0, device_minor = 0;  // 0 with a build_id: the kernel gives one or the other
  uint64_t inode = 0;
  bool executable = false;
  std::string_view path;  // "/usr/lib/…", "[vdso]", "//anon", "/memfd:x (deleted)"
};
struct ForkEvent {  // process or, with pid == parent, thread
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
// Kernel code that belongs to no file came or went: a BPF program or trampoline, ftrace's or kprobes' (Linux 5.9). Told
// before it can run; when it went, it may run for a moment more.
struct KernelCodeEvent {
  MonotonicNs time;
  uint64_t start = 0, length = 0;
  bool is_bpf = false;
  bool gone = false;
  std::string_view name;  // "bpf_prog_6deef7357e7b4530_sd_fw_egress", "ftrace_trampoline"
};
// A cgroup was made (Linux 5.7), in the hierarchy that has perf_event: the unified one, unless v1 has taken it.
struct CgroupEvent {
  MonotonicNs time;
  uint64_t id = 0;  // as samples carry it
  std::string_view path;
};
struct LostEvent {  // a CPU's sideband overran: every process may have stale mappings, the kernel other code
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
  // Seconds of samples that the ring can hold if user space does not come: size = next power of two of rate × CPUs × 1
  // KiB × this.
  uint32_t ring_seconds = 2;
  // Of the ring of stack copies; 0 = 128 KiB a CPU, at least 512 KiB: seven copies of the largest kind.
  uint32_t copies_bytes = 0;
  uint32_t contexts = 1;         // that programs run in: of enum trib_context the first so many
  bool idle = false;             // for tests: ticks in the idle task are samples too
  std::string_view object = {};  // another sampling program, for tests; empty = the one built in. Borrowed during Open
};

// BPF programs, the perf events they hang on, the ring buffer and the sideband. Owned by the collector's loop thread;
// nothing here blocks. Order law: read the samples first, then the sideband. A mapping's event is written before its
// code can run, so whatever a sample needs is then already there.
class Probes {
 public:
  // FailedPrecondition / PermissionDenied / Unimplemented: one sentence each that says what is missing (privilege, BTF,
  // kernel version, perf_event) and what to do.
  static absl::StatusOr<std::unique_ptr<Probes>> Open(const ProbeOptions& options, Metrics& metrics);
  // Opens, and closes, an event as a CPU that comes online needs it. PermissionDenied: the calling thread may not.
  static absl::Status TryEvent();
  virtual ~Probes() = default;

  // The sideband is on from Open. Starts sampling on every online CPU, phases spread over one period (takes one period,
  // a few on a busy machine; called once).
  virtual absl::Status StartSampling() = 0;
  // No program entry happens after it returns; what the ring holds stays readable. Sideband goes on.
  virtual void StopSampling() = 0;

  // Hands over every record now in the rings: samples, then those with a copy of the stack, each oldest first per CPU.
  // `record` is whole and checked against its size; others are counted as lost{bad_record}. Returns the number of
  // records.
  virtual size_t DrainSamples(const std::function<void(const SampleRecord& record)>& visit) = 0;
  // Hands over every sideband record now readable, of all CPUs, in order of time.
  virtual void DrainSideband(SidebandVisitor& visitor) = 0;
  // Online CPUs that came or went since the last call get, or lose, their events. Called every few seconds.
  virtual void FollowHotplug() = 0;

  // Totals since Open, summed over CPUs: captured, idle, and lost by the reasons that the kernel side knows (and
  // bad_record).
  virtual Accounting ReadAccounting() = 0;
  virtual bool has_build_ids() const = 0;

  // What the walk in the kernel knows of processes and their code.
  virtual UnwindMaps& unwind_maps() = 0;
  // What outlives this process if it is killed, and what earlier ones left. Goes with this object, which Finish should
  // have been called before.
  virtual PinnedSession& pinned_session() = 0;
  // Readable when a ring fills faster than a timer empties it: drain both soon, which clears it. For epoll.
  virtual int wakeup_fd() const = 0;
  // Another sampling period from now on, on every CPU: each begins a new one. Samples say which one they were taken
  // with. A few system calls a CPU, 2 ms at most.
  virtual absl::Status SetPeriod(uint64_t period_ns) = 0;
  // Time spent in the sampling program since Open, on all CPUs.
  virtual uint64_t ReadRunNs() = 0;
};

}  // namespace tributary
