#include "kernel-collector/processes/process_environments.h"

#include <utility>

namespace tributary {

struct ProcessEnvironments::Reading {
  ProcessRunPtr run;
  bool ok = false;
  ProcessEnvironment environment;
  MonotonicNs ended;
};

ProcessEnvironments::ProcessEnvironments(Options options, Executor& executor, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      executor_(executor),
      clock_(clock),
      unread_(metrics.AddCounter("tributary_collector_environments_unread_total",
                                 "sampled processes that were gone before their environment was read")),
      dropped_(metrics.AddCounter("tributary_collector_environment_attributes_dropped_total",
                                  "attributes that processes say of themselves, over a limit")) {}

void ProcessEnvironments::Want(ProcessRun& run, const ProcessTable& processes) {
  // Of a run that has ended, or that exec has replaced, /proc shows nothing any more.
  ProcessRunPtr current = processes.Find(run.pid);
  if (current.get() != &run || run.exited) {
    run.environment = ProcessRun::Environment::kKnown;
    unread_.Add();
    return;
  }
  auto reading = std::make_shared<Reading>();
  reading->run = std::move(current);
  std::weak_ptr<bool> alive = alive_;
  const bool taken = executor_.Submit(
      [reading, proc_root = options_.proc_root, names = options_.names, pid = run.pid, &clock = clock_] {
        auto environment = ReadProcessEnvironment(proc_root, pid, names);
        reading->ended = clock.Monotonic();
        reading->ok = environment.ok();
        if (reading->ok) reading->environment = *std::move(environment);
      },
      [this, reading, alive] {
        if (!alive.expired()) read_.push_back(reading);
      });
  if (taken) run.environment = ProcessRun::Environment::kReading;
}

std::vector<ProcessRunPtr> ProcessEnvironments::Settle(const ProcessTable& processes) {
  std::vector<ProcessRunPtr> learned;
  for (const auto& reading : std::exchange(read_, {})) {
    ProcessRun& run = *reading->run;
    run.environment = ProcessRun::Environment::kKnown;
    // What began with an exec, or under the same pid, before the reading's end may be what was read.
    const ProcessRunPtr current = processes.Find(run.pid);
    const bool replaced = current != nullptr && current.get() != &run && current->began <= reading->ended;
    const bool ended = run.exited && run.last_seen <= reading->ended;
    if (!reading->ok || replaced || ended) {
      unread_.Add();
      continue;
    }
    dropped_.Add(reading->environment.dropped);
    if (reading->environment.attributes.empty()) continue;
    run.attributes = std::make_shared<const std::string>(std::move(reading->environment.attributes));
    learned.push_back(reading->run);
  }
  return learned;
}

}  // namespace tributary
