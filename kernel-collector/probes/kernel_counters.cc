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
  const auto events = [this](uint32_t event_counter) {
    return ReadSlot(TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_PROCESS_EVENT, event_counter));
  };
  if (counter == TRIB_CAPTURED) counts.AddEvents(events(TRIB_CAPTURED) + events(TRIB_EVENTS_MADE));
  if (counter == TRIB_RUN_NS) counts.AddEvents(events(TRIB_RUN_NS));
  if (counter == TRIB_LOST_RING_FULL) counts.AddEvents(events(TRIB_LOST_RING_FULL));
  return counts;
}

void KernelCounters::SetEventsMade(uint64_t events) const {
  const uint32_t slot = TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_PROCESS_EVENT, TRIB_EVENTS_MADE);
  std::vector<uint64_t> by_cpu(static_cast<size_t>(cpus_));
  by_cpu[0] = events;
  TRIBUTARY_CHECK(bpf_map_update_elem(map_.get(), &slot, by_cpu.data(), BPF_ANY) == 0);
}

uint64_t KernelCounters::ReadEventsRepeated() const {
  return ReadSlot(TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_PROCESS_EVENT, TRIB_EVENTS_REPEATED));
}

Accounting KernelCounters::ReadAccounting() const {
  Accounting accounting{.idle = Read(TRIB_IDLE)};
  accounting.LostFor(LossReason::kRingFull) = ReadTypes(TRIB_LOST_RING_FULL);
  accounting.LostFor(LossReason::kStackError) = ReadTypes(TRIB_LOST_STACK_ERROR);
  // Last: the programs count a record as captured first, so what is read here contains every loss from above.
  accounting.captured = ReadTypes(TRIB_CAPTURED);
  return accounting;
}

}  // namespace tributary
