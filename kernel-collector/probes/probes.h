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
#include "bpf/include/process_events.h"
#include "kernel-collector/probes/live_processes.h"
#include "kernel-collector/probes/pinned_session.h"
#include "kernel-collector/probes/sample_record.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "profile/executable_id.h"
#include "profile/model.h"

namespace tributary {

// Events about processes and kernel code. They come from the perf sideband: one perf event of type dummy per CPU, with
// the flags mmap2, comm, task, ksymbol, cgroup and, from Linux 5.12 on, build_id. Times are of CLOCK_MONOTONIC. String
// views in an event are valid only during the callback. Source: perf_event_open(2), include/uapi/linux/perf_event.h.
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
// Kernel code without a file was added or removed: a BPF program or trampoline, or code of ftrace or kprobes (from
// Linux 5.9 on). New code is reported before it can run. Removed code may run for a moment longer.
struct KernelCodeEvent {
  MonotonicNs time;
  uint64_t start = 0, length = 0;
  bool is_bpf = false;
  bool gone = false;
  std::string_view name;  // "bpf_prog_6deef7357e7b4530_sd_fw_egress", "ftrace_trampoline"
};
// A cgroup was created in the hierarchy that has the controller perf_event. This is the unified hierarchy, unless a v1
// hierarchy has the controller. Needs Linux 5.7.
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
  // How many seconds of samples the ring has space for. Its size is rate × CPUs × ring_seconds × 1 KiB, rounded up to a
  // power of two, but at least 64 KiB and at most 128 MiB (probes/ring_size.h).
  uint32_t ring_seconds = 2;
  // Size of the ring of stack copies. 0: 128 KiB per CPU, rounded up to a power of two, but at most 128 MiB, and at
  // least 512 KiB, which is enough for seven copies of the largest size.
  uint32_t copies_bytes = 0;
  bool process_events = true;    // report start, exec and exit of every process
  uint32_t contexts = 1;         // number of contexts that programs run in: the first ones of enum trib_context
  bool idle = false;             // for tests: ticks in the idle task are samples too
  std::string_view object = {};  // another sampling program, for tests; empty = the built-in one. Borrowed during Open
};

// The BPF programs, their perf events, the ring buffers and the sideband. Use it on the collector's loop thread. Only
// StartSampling, SetPeriod and some methods of UnwindMaps block; their comments say for how long. The caller must drain
// the samples first, then the sideband. The kernel writes the event of a mapping before code in the mapping can run. So
// the sideband then contains all events that these samples need.
class Probes {
 public:
  // FailedPrecondition, PermissionDenied, Unimplemented: the message is one sentence that says what is missing (a
  // privilege, BTF, the kernel version, perf_event) and what to do.
  static absl::StatusOr<std::unique_ptr<Probes>> Open(const ProbeOptions& options, Metrics& metrics);
  // Opens and closes a perf event, to find out whether events can be opened for CPUs that come online later.
  // PermissionDenied if the calling thread may not open it.
  static absl::Status TryEvent();
  // Returns false if the running kernel cannot walk the frames of language runtimes: arm64 before Linux 6.0. Then no
  // runtime may be given to UnwindMaps.
  static bool SupportsRuntimes();
  virtual ~Probes() = default;

  // Starts sampling on every online CPU. The CPUs start one after the other, spread over one period. Blocks for one
  // period, or for a few periods on a busy machine. Call it once. The sideband has run since Open.
  virtual absl::Status StartSampling() = 0;
  // After the return, no sampling program runs any more, and no process event is reported. The records in the rings
  // stay readable. The sideband continues.
  virtual void StopSampling() = 0;

  // Passes every record that is now in the rings to `visit`: first samples without a copy of the stack, then samples
  // with a copy. In each ring, the records of one CPU are in order of time. Malformed records are not passed, but count
  // as lost{bad_record}. Returns the number of records that were passed.
  virtual size_t DrainSamples(const std::function<void(const SampleRecord& record)>& visit) = 0;
  // Passes every process event that is now in its ring to `visit`, nearly in order of time. Malformed records count as
  // lost{bad_record}.
  virtual void DrainProcessEvents(const std::function<void(const trib_process_event& event)>& visit) = 0;
  // Passes one event of kind TRIB_EVENT_RUNNING for every process that runs now, except kernel threads. Call it once.
  // Returns false if the list is not complete. This is logged: the missing processes have no event until they end.
  virtual bool ListProcesses(const std::function<void(const trib_process_event& event)>& visit) = 0;
  // Adds events that the caller made itself to the captured process events.
  virtual void AddEventsMade(uint64_t events) = 0;
  // Passes every readable sideband record of all CPUs to `visitor`, in order of time.
  virtual void DrainSideband(SidebandVisitor& visitor) = 0;
  // Opens the events of CPUs that came online since the last call, and closes those of CPUs that went offline. Call it
  // every few seconds.
  virtual void FollowHotplug() = 0;

  // Returns the totals since Open, summed over CPUs: captured samples, idle ticks, the losses that the BPF programs
  // count, and bad_record.
  virtual Accounting ReadAccounting() = 0;
  virtual bool has_build_ids() const = 0;

  // The data about processes and their code that the stack walk in the kernel uses.
  virtual UnwindMaps& unwind_maps() = 0;
  // The counts that outlive this process if it is killed, and the counts that earlier collectors left. The result is
  // valid as long as this object. The caller should call PinnedSession::Finish before this object is destroyed.
  virtual PinnedSession& pinned_session() = 0;
  // The list of running processes, which also outlives this process.
  virtual LiveProcesses& live_processes() = 0;
  // Returns a descriptor for epoll. It becomes readable when the ring of stack copies or of process events is more than
  // a quarter full, when a sideband ring is half full, or when a sample has a chain (runtime_chain.h) of a process that
  // is younger than 2 s. The caller should then drain samples and sideband soon. After
  // that, the descriptor is no longer readable.
  virtual int wakeup_fd() const = 0;
  // Sets another sampling period. Every CPU begins a new period. Each sample contains the period with which it was
  // taken. Makes a few system calls per CPU, spread over at most 2 ms, and blocks for this time.
  virtual absl::Status SetPeriod(uint64_t period_ns) = 0;
  // Returns the run time of the BPF programs since Open, summed over CPUs. Runs that take no sample and report no
  // event, such as those on idle CPUs, do not count.
  virtual uint64_t ReadRunNs() = 0;
};

}  // namespace tributary
