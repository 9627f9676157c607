#pragma once

#include <array>
#include <cstdint>

#include "base/fd.h"
#include "bpf/include/records.h"

namespace tributary {

// The kernel side's counters (map trib_counters). Owns the map: numbers stay readable after the programs are gone.
// Every method is thread-safe: reads are system calls (about 1 µs a counter).
class KernelCounters {
 public:
  using Values = std::array<uint64_t, TRIB_COUNTER_COUNT>;

  // `map` is a BPF_MAP_TYPE_PERCPU_ARRAY of u64, one element a trib_counter.
  explicit KernelCounters(Fd map);

  uint64_t Read(trib_counter counter) const;  // summed over CPUs
  Values ReadAll() const;

 private:
  Fd map_;
  int cpus_;  // possible ones
};

}  // namespace tributary
