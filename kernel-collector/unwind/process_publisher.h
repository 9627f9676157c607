#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/runtimes/runtime_slots.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// Publishes the mappings of sampled processes to the stack walk in the kernel. Each process has a table of mappings. A
// forked child shares its parent's table until the mappings of one of them change. When there is no space for another
// table or process, the processes that were not sampled for the longest time are evicted, and counted. A table's space
// is reused only after a grace period (UnwindMaps::WaitGrace). Loop thread only.
class ProcessPublisher {
 public:
  ProcessPublisher(UnwindMaps& maps, UnwindTables& tables, RuntimeSlots& runtimes, Executor& executor,
                   const Clock& clock, Metrics& metrics);
  ~ProcessPublisher();

  // Publishes the current mappings of `run`, so that the kernel walks the run's stacks by unwind rows. Replaces the
  // data that was published for this pid before. Mappings of files that are not read yet are left out: the caller must
  // call Publish again when the files have been read. `exec_id` and the start time come from a sample of the run. Costs
  // about 1 µs and 32 bytes per mapping. Costs nothing if the run has not changed since the last call.
  void Publish(ProcessRun& run, uint64_t start_time_ns, uint64_t exec_id);
  // Removes the published data. Call it when the process has ended or runs another program.
  void Withdraw(Pid pid);
  // Call it when the kernel has walked a stack of the process with its table. This delays the process's eviction.
  void Touch(Pid pid, MonotonicNs time);

  // Returns the time of the event or scan that reported the newest mapping in a published table. `table`: its number
  // (trib_sample.table). Returns nullopt if the table was replaced long ago.
  std::optional<MonotonicNs> MadeAt(uint32_t table) const;

  size_t processes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
