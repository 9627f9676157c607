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

// Reads the resource attributes of each sampled process. There are two sources. The first is its environment
// (process_environment.h), read once per exec. A child that has not called exec has its parent's environment. This also
// holds if the child ended before its environment could be read, as long as the parent still runs. The second source is
// the context that an SDK in the process publishes (process_context.h). The SDK publishes it after its start, and may
// change it. So the process is checked for a context while it is sampled: kFirstContextNs after its first sample, then
// at intervals that grow tenfold each time up to kContextPeriodMaxNs. The context takes precedence over the
// environment.
//
// No sample waits for a reading: the attributes are reported when they are known, with the batch that is being filled.
// A process can delay the reading of its memory without limit. So each process has at most one reading at a time, and
// `executor` should be a separate Worker that tolerates some stuck jobs. Loop thread.
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

  // Call it when a user process's run is sampled.
  void OnSample(const ProcessRunPtr& run, MonotonicNs now, const ProcessTable& processes) {
    if (run->environment == ProcessRun::Environment::kUnread || now >= run->context_due) Want(run, now, processes);
  }
  // Stores the readings since the last call in their runs. Ignores a reading if the run had ended before the reading
  // did, or if its pid belonged to another program by then. Process events show this, so the caller must have fed all
  // events up to now. Returns the runs with new or changed attributes to report.
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
