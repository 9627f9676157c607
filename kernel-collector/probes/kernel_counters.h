#pragma once

#include <cstdint>

#include "base/fd.h"
#include "bpf/include/records.h"
#include "profile/accounting.h"

namespace tributary {

// The kernel side's counters (map trib_counters). Owns the map: the counters stay readable after the programs are gone.
// Every method is thread-safe: reads are system calls (about 1 µs per counter, type and context).
class KernelCounters {
 public:
  // `map` is a BPF_MAP_TYPE_PERCPU_ARRAY of u64, TRIB_COUNTER_SLOTS(contexts) elements.
  KernelCounters(Fd map, uint32_t contexts);
  // Returns the number of contexts of a map with `elements` elements; 0 if it is not a map of counters.
  static uint32_t ContextsOf(uint32_t elements);

  // Summed over CPUs.
  uint64_t Read(trib_counter counter) const { return ReadTypes(counter).total(); }
  uint64_t Read(trib_counter counter, trib_context context) const;
  SampleCounts ReadTypes(trib_counter counter) const;
  // Returns captured, idle, and the losses that the kernel side counts.
  Accounting ReadAccounting() const;

  uint32_t contexts() const { return contexts_; }

 private:
  uint64_t ReadSlot(uint32_t slot) const;

  Fd map_;
  uint32_t contexts_;
  int cpus_;  // number of possible CPUs
};

}  // namespace tributary
