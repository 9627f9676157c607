#include "kernel-collector/probes/kernel_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <numeric>
#include <vector>

#include "base/status.h"

namespace tributary {

KernelCounters::KernelCounters(Fd map, uint32_t contexts)
    : map_(std::move(map)), contexts_(contexts), cpus_(libbpf_num_possible_cpus()) {
  TRIBUTARY_CHECK(cpus_ > 0);
}

uint32_t KernelCounters::ContextsOf(uint32_t elements) {
  return elements % TRIB_COUNTER_SLOTS(1) == 0 ? elements / TRIB_COUNTER_SLOTS(1) : 0;
}

uint64_t KernelCounters::ReadSlot(uint32_t slot) const {
  std::vector<uint64_t> by_cpu(static_cast<size_t>(cpus_));
  // An array's element below max_entries always exists.
  TRIBUTARY_CHECK(bpf_map_lookup_elem(map_.get(), &slot, by_cpu.data()) == 0);
  return std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
}

uint64_t KernelCounters::Read(trib_counter counter, trib_context context) const {
  uint64_t sum = 0;
  for (const SampleTypeRow& row : kSampleTypes) {
    sum += ReadSlot(TRIB_COUNTER_SLOT(context, static_cast<uint32_t>(row.type), counter));
  }
  return sum;
}

SampleCounts KernelCounters::ReadTypes(trib_counter counter) const {
  SampleCounts counts;
  for (uint32_t context = 0; context < contexts_; ++context) {
    for (const SampleTypeRow& row : kSampleTypes) {
      counts.Add(row.type, ReadSlot(TRIB_COUNTER_SLOT(context, static_cast<uint32_t>(row.type), counter)));
    }
  }
  return counts;
}

Accounting KernelCounters::ReadAccounting() const {
  Accounting accounting{.captured = ReadTypes(TRIB_CAPTURED), .idle = Read(TRIB_IDLE)};
  accounting.LostFor(LossReason::kRingFull) = ReadTypes(TRIB_LOST_RING_FULL);
  accounting.LostFor(LossReason::kStackError) = ReadTypes(TRIB_LOST_STACK_ERROR);
  return accounting;
}

}  // namespace tributary
