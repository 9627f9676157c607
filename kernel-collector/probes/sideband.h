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

// What the kernel tells of processes and its own code, from one perf ring per CPU, merged in order of time. Costs
// nothing on system calls other than mmap, mprotect, fork, exec, exit, prctl; 256 KiB a CPU (less where locked memory
// is short), which holds about 2,000 records between two drains. One thread.
class Sideband {
 public:
  // `metrics` outlives it. `wakeups`: an epoll instance that becomes readable when a ring fills; -1: none.
  explicit Sideband(Metrics& metrics, int wakeups = -1);
  ~Sideband();

  // Opens the ring of a CPU that has none. NotFound: the CPU is not online; others as OpenSidebandEvent.
  absl::Status AddCpu(int cpu);
  // The next Drain delivers what the CPU's ring still holds, then drops it.
  void RemoveCpu(int cpu);
  bool has_cpu(int cpu) const { return rings_.contains(cpu); }
  std::vector<int> cpus() const;  // ascending
  // The CPU has a ring whose event died, for the CPU went offline since the last call, even if it is back: remove it
  // and add it again.
  bool IsDead(int cpu, MonotonicNs now);

  // Events went by unheard (a CPU ran before it had a ring): the next Drain begins with a LostEvent.
  void NoteGap() { gap_ = true; }

  // Delivers records written up to `now`, a reading of CLOCK_MONOTONIC taken by the caller just before. Younger ones
  // wait for the next call: a record X that caused a record Y on another CPU is in its ring before Y's time is taken,
  // so whenever Y is old enough, X is readable, and causes always come first.
  void Drain(SidebandVisitor& visitor, MonotonicNs now);

  bool has_build_ids() const { return build_ids_; }

 private:
  struct Ring;

  void Deliver(std::span<const uint8_t> record, SidebandVisitor& visitor);

  const int wakeups_;
  Counter& lost_;
  Counter& bad_;
  bool gap_ = false;
  bool build_ids_ = true;  // until the kernel refuses
  std::map<int, std::unique_ptr<Ring>> rings_;
  std::vector<std::unique_ptr<Ring>> retired_;
};

}  // namespace tributary
