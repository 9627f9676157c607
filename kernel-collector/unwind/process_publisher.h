#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// Publishes the mappings of sampled processes to the kernel side. A forked child shares its parent's table while
// neither of them changes. When there is no space for another table or process, the processes that were not sampled for
// the longest time are evicted and counted. A table's space is reused only after a grace period. Loop thread only.
class ProcessPublisher {
 public:
  ProcessPublisher(UnwindMaps& maps, UnwindTables& tables, Executor& executor, const Clock& clock, Metrics& metrics);
  ~ProcessPublisher();

  // Gives the kernel side the mappings of `run` as they are now, so that it walks the run's stacks by rows. Replaces
  // the kernel's earlier data of that pid. Mappings of files that are not read yet are left out: the caller must call
  // Publish again when they are read. `exec_id` and the start time come from a sample of the run. Costs a microsecond
  // and 32 bytes per mapping, or nothing if the run has not changed since.
  void Publish(ProcessRun& run, uint64_t start_time_ns, uint64_t exec_id);
  // Call it when the process is gone or is now another program.
  void Withdraw(Pid pid);
  // Call it when a sample of the process was walked with a table.
  void Touch(Pid pid, MonotonicNs time);

  // Returns the time of the event or scan that reported the newest mapping in that table. Returns nullopt if the table
  // was replaced long ago.
  std::optional<MonotonicNs> MadeAt(uint32_t table) const;

  size_t processes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
