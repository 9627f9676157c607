#include "reducer/sqlite/maintenance_tasks.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"

namespace tributary::store {

std::string_view NameOf(MaintenanceTask task) {
  constexpr std::string_view kNames[kMaintenanceTaskCount] = {
      "shorten_log",     "close_minutes",  "expire_samples", "expire_sums",        "expire_events",
      "expire_sessions", "expire_by_size", "remove_days",    "remove_definitions", "return_pages",
      "merge_events",    "merge_tries",    "merge_processes"};
  return kNames[static_cast<size_t>(task)];
}

TaskFailures::TaskFailures(std::string file, DamageReports& damage, const Clock& clock, Metrics& metrics)
    : file_(std::move(file)), damage_(damage), clock_(clock) {
  for (size_t i = 0; i < kMaintenanceTaskCount; ++i) {
    tasks_[i].failures =
        &metrics.AddCounter("tributary_reducer_maintenance_failures_total", "Failed tasks of a shard's maintenance",
                            {{"task", std::string(NameOf(static_cast<MaintenanceTask>(i)))}});
  }
}

void TaskFailures::Note(MaintenanceTask task, const absl::Status& outcome) {
  Task& of_task = tasks_[static_cast<size_t>(task)];
  const std::string kind = fmt::format("maintenance: {}", NameOf(task));
  if (outcome.ok()) {
    if (std::exchange(of_task.listed, false)) damage_.Unlist(kind);
    return;
  }
  of_task.failures->Add(1);
  if (absl::IsDataLoss(outcome)) {
    of_task.listed = true;
    damage_.List(kind, 1, Message(outcome));
  }
  if (uint64_t suppressed; of_task.log.Allow(clock_.Monotonic(), &suppressed)) {
    LogError("a task of maintenance failed, the others go on{} file={} task={} error=\"{}\" suppressed={}",
             absl::IsDataLoss(outcome) ? "; run 'tributary check' on the data directory" : "", file_, NameOf(task),
             Message(outcome), suppressed);
  }
}

}  // namespace tributary::store
