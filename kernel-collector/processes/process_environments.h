#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/processes/process_environment.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// Has the environment of each process that is sampled read, once per exec; a child that has not called exec has its
// parent's. No sample waits for it: what a process says of itself is told when it is known, with the batch that is
// being filled. `executor` should be of its own, for reading a process's memory can take as long as that process likes;
// while it does, others go without. Loop thread.
class ProcessEnvironments {
 public:
  struct Options {
    std::string proc_root = "/proc";
    std::vector<std::string> names;  // see ParseProcessEnvironment
  };

  ProcessEnvironments(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // A user process's run is sampled whose environment nobody has asked for yet.
  void Want(ProcessRun& run, const ProcessTable& processes);
  // Gives what has been read since the last call to its runs, if they were still what was read: process events up to
  // now must have been fed, which tell. Returns the runs that there is more to tell of.
  std::vector<ProcessRunPtr> Settle(const ProcessTable& processes);

 private:
  struct Reading;

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  std::vector<std::shared_ptr<Reading>> read_;
  Counter& unread_;
  Counter& dropped_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tributary
