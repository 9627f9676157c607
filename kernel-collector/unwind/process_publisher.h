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

// Which processes' mappings the kernel side has: those that were sampled. A forked child shares its parent's table as
// long as neither changes. When tables or processes run out of room, those not sampled for longest go (counted); a
// range is reused only after a grace period. Loop thread only.
class ProcessPublisher {
 public:
  ProcessPublisher(UnwindMaps& maps, UnwindTables& tables, Executor& executor, const Clock& clock, Metrics& metrics);
  ~ProcessPublisher();

  // Makes the kernel side walk `run`, as it is now, by rows; replaces what it had of that pid. Mappings of files that
  // are not read yet are left out: publish again when they are. `exec_id` and the start time are those of a sample of
  // the run. Costs a microsecond and 32 bytes a mapping; nothing when the run has not changed since.
  void Publish(ProcessRun& run, uint64_t start_time_ns, uint64_t exec_id);
  // The process is gone, or another program by now.
  void Withdraw(Pid pid);
  // A sample of it was walked with table number `table`.
  void Touch(Pid pid, MonotonicNs time);

  // What the table of that number knows: mappings learned up to then, by the events' own times. nullopt: replaced long
  // ago.
  std::optional<MonotonicNs> MadeAt(uint32_t table) const;

  size_t processes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
