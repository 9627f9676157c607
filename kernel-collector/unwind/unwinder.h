#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/probes/sample_record.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/runtimes/runtime_slots.h"
#include "kernel-collector/unwind/process_publisher.h"
#include "kernel-collector/unwind/stack_walker.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// A user stack, walked as far as the loaded data allows.
struct WalkedStack {
  std::vector<uint64_t> user;  // leaf first, as in a record
  trib_stop stop = TRIB_STOP_NONE;
  bool wants_more = false;  // the walk needs rows or a file that are not loaded yet
  bool stale = false;       // cut where the walk used a mapping that had been replaced
};

// Completes native stacks on the node. It continues walks that the kernel could not finish. It also publishes the
// missing data to the kernel, so that the kernel can finish later walks itself. Loop thread only.
class Unwinder {
 public:
  Unwinder(UnwindMaps& maps, RuntimeSlots& runtimes, Executor& executor, const Clock& clock, Metrics& metrics,
           UnwindTables::Options options, std::shared_ptr<UnwindCompiler> compiler);

  // Returns how many of a record's user frames the kernel found with mappings that were still valid. kAllFrames: all of
  // them. Call it as soon as the record arrives, because `run` stores only the last few replacements of mappings.
  static constexpr size_t kAllFrames = SIZE_MAX;
  size_t FramesToTrust(const SampleRecord& record, const ProcessRun& run);

  // Walks the user stack of a record of `run`. `snapshot` is the run's mapping list at the time when the record
  // arrived; null: use the current list. `unread` is called for a file that must be read first. `out` can be reused, to
  // avoid allocations.
  void Walk(const SampleRecord& record, size_t frames_to_trust, const ProcessRun& run,
            const MappingTable::List* snapshot, const std::function<void(const CodeFilePtr&)>& unread,
            WalkedStack* out);

  // Call it for each sample. If the kernel's walk did not know the process or one of its mappings, publishes the
  // process's mappings. `run` must be the current run of its pid.
  void Learn(const trib_sample& sample, ProcessRun& run);
  // Withdraws the process's mappings from the kernel. Call it when the process has ended, or when its mappings were
  // replaced.
  void Forget(Pid pid) { publisher_.Withdraw(pid); }

  // Returns whether threads or processes start in the function at `address`, an ELF address.
  bool IsStart(const CodeFile& executable, uint64_t address) const { return tables_.IsStart(executable, address); }
  void Tick() { tables_.Tick(); }

 private:
  UnwindTables tables_;
  ProcessPublisher publisher_;
  StackWalker walker_;
  StackWalker::Result result_;
  Counter& continued_;
  Counter& continued_short_;
  Counter& stale_;
};

}  // namespace tributary
