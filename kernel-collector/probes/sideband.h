#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "base/types.h"
#include "kernel-collector/probes/perf_ring.h"
#include "kernel-collector/probes/probes.h"

namespace tributary {

// Reads the events of processes and of kernel code from one perf ring per CPU, and delivers them in order of time. It
// slows down only the system calls that cause an event: mmap, mprotect, fork, exec, exit, prctl, and calls that create
// cgroups or load and remove BPF programs. Uses 256 KiB per CPU, enough for about 2,000 records between two drains. If
// the limit of locked memory is low, it uses less. Not thread-safe.
class Sideband {
 public:
  // `metrics` must outlive the sideband. `wakeups` is an epoll instance that becomes readable when a ring is half full;
  // -1: none.
  explicit Sideband(Metrics& metrics, int wakeups = -1);
  ~Sideband();

  // Opens the ring of a CPU that has no ring yet. NotFound: the CPU is not online. Other errors as OpenSidebandEvent.
  absl::Status AddCpu(int cpu);
  // The next Drain delivers the records that are still in the CPU's ring, then drops the ring.
  void RemoveCpu(int cpu);
  bool has_cpu(int cpu) const { return rings_.contains(cpu); }
  std::vector<int> cpus() const;  // ascending
  // Returns true if the perf event of the CPU's ring has stopped, because the CPU went offline since the last call. The
  // event does not start again when the CPU is online again. So the caller must then remove the CPU and add it again.
  bool IsDead(int cpu, MonotonicNs now);

  // Notes that events were missed (a CPU ran before it had a ring). The next Drain begins with a LostEvent.
  void NoteGap() { gap_ = true; }

  // Delivers the records that were written up to `now`. The caller must read `now` from CLOCK_MONOTONIC just before the
  // call. Later records stay in the rings until the next call. Suppose that record X caused record Y on another CPU, as
  // a fork causes the child's events. X is in its ring before the kernel reads the time for Y. So if Y is delivered, X
  // is readable too and is delivered before Y.
  void Drain(SidebandVisitor& visitor, MonotonicNs now);

  bool has_build_ids() const { return build_ids_; }

 private:
  struct Ring;

  void Deliver(std::span<const uint8_t> record, SidebandVisitor& visitor);
  void ReportLost(uint64_t events, SidebandVisitor& visitor);

  const int wakeups_;
  Counter& lost_;
  Counter& bad_;
  bool gap_ = false;
  bool build_ids_ = true;  // until the kernel refuses
  std::map<int, std::unique_ptr<Ring>> rings_;
  std::vector<std::unique_ptr<Ring>> retired_;
};

}  // namespace tributary
