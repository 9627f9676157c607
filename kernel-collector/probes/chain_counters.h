#pragma once

#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "base/metrics.h"
#include "bpf/include/runtimes.h"

namespace tributary {

// Reads the counters of the chains of language runtimes (map trib_chain_counters). Owns the map, so the counters can be
// read after the programs were unloaded. Thread-safe. A read takes about 1 µs for each context.
class ChainCounters {
 public:
  // `map` is a BPF_MAP_TYPE_PERCPU_ARRAY of u64 with TRIB_CHAIN_COUNTER_SLOTS(TRIB_CONTEXT_COUNT) elements.
  explicit ChainCounters(Fd map);

  // Returns the sum over CPUs and contexts. `counter` is a trib_chain_end or a trib_chain_counter.
  uint64_t Read(trib_runtime_kind kind, uint32_t counter) const;

 private:
  Fd map_;
  int cpus_;  // number of possible CPUs
};

// Adds the metrics of all counters.
void AddChainMetrics(std::shared_ptr<const ChainCounters> counters, Metrics& metrics);

}  // namespace tributary
