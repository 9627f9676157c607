#pragma once

#include <cstdint>

#include "base/fd.h"
#include "bpf/include/process_events.h"
#include "profile/accounting.h"

namespace tributary {

// Reads the counters of the BPF programs (map trib_counters), and writes one counter of its own there. Owns the map, so
// the counters can be read after the programs were unloaded. Thread-safe. Reads are system calls: about 1 µs per
// counter, sample type and context.
class KernelCounters {
 public:
  // `map` is a BPF_MAP_TYPE_PERCPU_ARRAY of u64 with TRIB_COUNTER_SLOTS(contexts) elements.
  KernelCounters(Fd map, uint32_t contexts);
  // Returns the number of contexts for which a map with `elements` elements has counters; 0 if no number of contexts
  // fits.
  static uint32_t ContextsOf(uint32_t elements);

  // Summed over CPUs.
  uint64_t Read(trib_counter counter) const { return ReadTypes(counter).total(); }
  uint64_t Read(trib_counter counter, trib_context context) const;
  // Of all contexts, by type. TRIB_CAPTURED, TRIB_LOST_RING_FULL and TRIB_RUN_NS include process
  // events.
  SampleCounts ReadTypes(trib_counter counter) const;
  // Sets the number of process events that the collector itself made. They count as captured. The number is among the
  // counters, so that it survives a killed collector as they do.
  void SetEventsMade(uint64_t events) const;
  // The runs in which another copy of a program that reports process events replaced the first one.
  uint64_t ReadEventsRepeated() const;
  // Returns the captured samples, the idle ticks, and the losses that the BPF programs count.
  Accounting ReadAccounting() const;

  uint32_t contexts() const { return contexts_; }

 private:
  uint64_t ReadSlot(uint32_t slot) const;

  Fd map_;
  uint32_t contexts_;
  int cpus_;  // number of possible CPUs
};

}  // namespace tributary
