#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// Reads the resource attributes of each sampled process. There are two sources. The first is the environment
// (process_environment.h), which is read once per exec. A child that has not called exec has its parent's environment.
// So if such a child ended before its environment was read, the parent's environment is used, if it is known or can
// still be read. The second source is the context that an SDK in the process publishes (process_context.h). The SDK
// publishes it some time after the start of the process, and may change it. So the context is read repeatedly while the
// process is sampled: first kFirstContextNs after the first sample, then at intervals that grow tenfold each time, up
// to kContextPeriodMaxNs. The context takes precedence over the environment.
//
// No sample waits for a reading. When the attributes are known, they are reported with the current batch. A process can
// delay the reading of its memory without limit. So each process has at most one reading at a time, and `executor`
// should be a separate Worker that tolerates some stuck jobs. Loop thread only.
class ResourceReader {
 public:
  static constexpr int64_t kFirstContextNs = 2 * kNsPerSecond;
  static constexpr int64_t kContextPeriodMaxNs = 2000 * kNsPerSecond;
  static constexpr size_t kStuckMax = 8;  // up to this many stuck processes do not delay the others

  struct Options {
    std::string proc_root = "/proc";
    std::vector<std::string> names;  // see ParseProcessEnvironment
  };

  ResourceReader(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // Call it for each sample of a process, except for kernel threads.
  void OnSample(const ProcessRunPtr& run, MonotonicNs now, const ProcessTable& processes) {
    if (run->environment == ProcessRun::Environment::kUnread || now >= run->context_due) Want(run, now, processes);
  }
  // Stores the results of readings that finished since the last call in their runs. Ignores a result if the run had
  // ended before the reading finished, because the data may then belong to another program with the same pid. Process
  // events report such an end, so the caller must first pass to `processes` all events that have arrived. Returns the
  // runs that have new or changed attributes.
  std::vector<ProcessRunPtr> Settle(const ProcessTable& processes);

 private:
  struct Reading;

  void Want(const ProcessRunPtr& run, MonotonicNs now, const ProcessTable& processes);
  void WantEnvironment(const ProcessRunPtr& run);
  bool Submit(std::shared_ptr<Reading> reading);
  void TakeEnvironment(Reading& reading, bool was_it);
  void TakeContext(Reading& reading, bool was_it);
  void Inherit(const ProcessRunPtr& run);
  void Settled(const ProcessRunPtr& run, const std::optional<std::shared_ptr<const std::string>>& environment);
  void Learn(const ProcessRunPtr& run);

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  std::vector<std::shared_ptr<Reading>> read_;
  std::vector<ProcessRunPtr> learned_;  // the next Settle returns these
  Counter& unread_;
  Counter& contexts_;
  Counter& contexts_refused_;
  Counter& dropped_;
  CallbackScope scope_;
};

}  // namespace tributary
