#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "bpf/include/process_events.h"
#include "kernel-collector/probes/kernel_counters.h"
#include "kernel-collector/probes/missed_runs.h"
#include "kernel-collector/probes/ring_consumer.h"

struct bpf_link;
struct bpf_object;

namespace tributary {

// The BPF programs that report process events (bpf/process_events.bpf.h), and their ring. The programs run from Attach
// to Stop. Use it on one thread.
class ProcessPrograms {
 public:
  // Call it before the object is loaded. Sets the size of the ring, a power of two and whole pages. If `ring_bytes` is
  // 0, the programs are not loaded. `repeat` is trib_config.repeat_events: it loads all copies of the programs.
  static absl::Status Configure(bpf_object* object, uint32_t ring_bytes, bool repeat);
  // Attaches the loaded programs of an object, which is borrowed. `counters` counts for the object. Needs CAP_PERFMON.
  // Does not attach the first `leave_out` copies, as if the kernel skipped all their runs: for tests.
  static absl::StatusOr<std::unique_ptr<ProcessPrograms>> Attach(bpf_object* object,
                                                                 std::shared_ptr<const KernelCounters> counters,
                                                                 uint32_t leave_out);
  ~ProcessPrograms();
  ProcessPrograms(const ProcessPrograms&) = delete;
  ProcessPrograms& operator=(const ProcessPrograms&) = delete;

  // Detaches the programs. A program that is interrupted just then may still report an event. The records in the ring
  // stay readable.
  void Stop();
  // Passes every record that was in the ring when the call began to `visit`. Records are nearly in order of time: while
  // a program is interrupted, other programs may put their records before its record.
  void Drain(const std::function<void(const trib_process_event&)>& visit);
  // Passes one record of kind TRIB_EVENT_RUNNING for every process that runs now, except kernel threads. Call it
  // once. It needs no capability.
  absl::Status ListRunning(const std::function<void(const trib_process_event&)>& visit);
  // The number of malformed records. A malformed record counts as an event.
  uint64_t bad_records() const { return bad_records_; }
  // How often the kernel ran no copy of a program (MissedRuns). Each time, an event may be missing: for threads that
  // are not the last of their process, and for kernel threads, there was none. Costs about five system calls.
  uint64_t ReadMissed();
  // Returns a descriptor that wakes an epoll when more than a quarter of the ring is full.
  int wakeup_fd() const { return ring_fd_; }

 private:
  explicit ProcessPrograms(std::shared_ptr<const KernelCounters> counters) : counters_(std::move(counters)) {}

  std::optional<MappedRing> ring_;
  int ring_fd_ = -1;  // borrowed from the object
  std::shared_ptr<const KernelCounters> counters_;
  std::vector<bpf_link*> links_;  // owned
  std::vector<int> reporters_;    // the first copies of the programs that report events; borrowed from the object
  MissedRuns missed_;
  Fd list_;  // the list of processes
  uint64_t bad_records_ = 0;
};

}  // namespace tributary
