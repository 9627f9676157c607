#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/probes/sample_record.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/unwind/process_publisher.h"
#include "kernel-collector/unwind/stack_walker.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// A user stack, walked as far as it goes by now.
struct WalkedStack {
  std::vector<uint64_t> user;  // leaf first, as in a record
  trib_stop stop = TRIB_STOP_NONE;
  bool wants_more = false;  // rows or a file that it needs are on their way
  bool stale = false;       // cut where the walk went by a mapping that had been replaced
};

// What completes native stacks on the node: goes on with walks that the kernel could not finish, and tells the kernel
// what it lacked, so that it can finish the next. Loop thread only.
class Unwinder {
 public:
  Unwinder(UnwindMaps& maps, Executor& executor, const Clock& clock, Metrics& metrics, UnwindTables::Options options,
           std::shared_ptr<UnwindCompiler> compiler);

  // How many of a record's user frames the kernel found by mappings that were still there; kAllFrames: all. Asked when
  // the record comes: `run` remembers the last few mappings that took another's place.
  static constexpr size_t kAllFrames = SIZE_MAX;
  size_t FramesToTrust(const SampleRecord& record, const ProcessRun& run);

  // The user stack of a record of `run`. `snapshot` is the run's mappings when it came (null: the present ones count);
  // `unread` is called for a file that must be read first. `out` is reused.
  void Walk(const SampleRecord& record, size_t frames_to_trust, const ProcessRun& run,
            const MappingTable::List* snapshot, const std::function<void(const CodeFilePtr&)>& unread,
            WalkedStack* out);

  // The kernel did not know the process or one of its mappings: it will, if `run` is what the pid still is.
  void Learn(const trib_sample& sample, ProcessRun& run);
  // The process is gone, or its mappings are other ones than those that the kernel may have been told of.
  void Forget(Pid pid) { publisher_.Withdraw(pid); }

  // Whether threads or processes start in the function of that ELF address.
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
