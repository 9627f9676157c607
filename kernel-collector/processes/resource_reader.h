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

// Has read what each process that is sampled says of itself. Its environment (process_environment.h), once per exec; a
// child that has not called exec has its parent's, also where it was gone before either could be read and the parent
// still runs. What an SDK in it publishes (process_context.h), which it does when it has started, and may change: that
// is looked for while the process is sampled, at kFirstContextNs after its first sample, then ten times as far apart
// each time up to kContextPeriodMaxNs. What it publishes goes before what its environment says.
//
// No sample waits for this: it is told when it is known, with the batch that is being filled. Reading a process's
// memory can take as long as that process likes: a process is read once at a time, and `executor` should be of its own,
// a Worker of which some jobs may be stuck. Loop thread.
class ResourceReader {
 public:
  static constexpr int64_t kFirstContextNs = 2 * kNsPerSecond;
  static constexpr int64_t kContextPeriodMaxNs = 2000 * kNsPerSecond;
  static constexpr size_t kStuckMax = 8;  // processes that others do not wait for

  struct Options {
    std::string proc_root = "/proc";
    std::vector<std::string> names;  // see ParseProcessEnvironment
  };

  ResourceReader(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // A user process's run is sampled.
  void OnSample(const ProcessRunPtr& run, MonotonicNs now, const ProcessTable& processes) {
    if (run->environment == ProcessRun::Environment::kUnread || now >= run->context_due) Want(run, now, processes);
  }
  // Gives what has been read since the last call to its runs, if they were still what was read: process events up to
  // now must have been fed, which tell. Returns the runs that there is more, or something else, to tell of.
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
  std::vector<ProcessRunPtr> learned_;  // what the next Settle returns
  Counter& unread_;
  Counter& contexts_;
  Counter& contexts_refused_;
  Counter& dropped_;
  CallbackScope scope_;
};

}  // namespace tributary
