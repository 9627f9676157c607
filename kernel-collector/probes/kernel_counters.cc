#include "kernel-collector/probes/kernel_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <numeric>
#include <vector>

#include "base/status.h"

namespace tributary {

KernelCounters::KernelCounters(Fd map) : map_(std::move(map)), cpus_(libbpf_num_possible_cpus()) {
  TRIBUTARY_CHECK(cpus_ > 0);
}

uint64_t KernelCounters::Read(trib_counter counter) const {
  std::vector<uint64_t> by_cpu(static_cast<size_t>(cpus_));
  uint32_t key = counter;
  // An array's element below max_entries always exists.
  TRIBUTARY_CHECK(bpf_map_lookup_elem(map_.get(), &key, by_cpu.data()) == 0);
  return std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
}

KernelCounters::Values KernelCounters::ReadAll() const {
  Values all{};
  for (int i = 0; i < TRIB_COUNTER_COUNT; ++i) all[i] = Read(static_cast<trib_counter>(i));
  return all;
}

}  // namespace tributary
