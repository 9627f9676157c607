#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/types.h"
#include "reducer/sqlite/damage_reports.h"

namespace tributary::store {

// The tasks of Maintenance, in their order.
enum class MaintenanceTask : uint8_t {
  kShortenLog,
  kCloseMinutes,
  kExpireSamples,
  kExpireSums,
  kExpireEvents,
  kExpireSessions,
  kExpireBySize,
  kRemoveDays,
  kRemoveDefinitions,
  kReturnPages,
  kMergeEvents,
  kMergeTries,
  kMergeProcesses,
};
constexpr size_t kMaintenanceTaskCount = 13;
std::string_view NameOf(MaintenanceTask task);  // for the log, and for a label of a metric

// Counts and logs failures of a shard's maintenance. Use it on the writer's thread.
class TaskFailures {
 public:
  static constexpr int64_t kLogEveryNs = 10 * kNsPerMinute;

  // `file`: the shard's. All borrowed objects must outlive this object. Failures because of damage are listed in
  // `damage` until the task works again.
  TaskFailures(std::string file, DamageReports& damage, const Clock& clock, Metrics& metrics);

  void Note(MaintenanceTask task, const absl::Status& outcome);

 private:
  struct Task {
    Counter* failures = nullptr;
    LogLimit log{kLogEveryNs};
    bool listed = false;
  };

  const std::string file_;
  DamageReports& damage_;
  const Clock& clock_;
  std::array<Task, kMaintenanceTaskCount> tasks_;
};

}  // namespace tributary::store
