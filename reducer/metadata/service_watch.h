#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/metadata/service_state_store.h"
#include "reducer/metadata/service_tracker.h"
#include "reducer/metadata/write_retry.h"
#include "reducer/store/store.h"

namespace tributary {

// Detects rollouts of services outside of Kubernetes, which no cluster's watcher (k8s-collector) reports. Every
// kPeriodNs, its thread reads the recently sampled processes of all shards, joins them with metadata, and passes them
// to ServiceTracker. It adds the rollouts that ServiceTracker finds to the log. Incoming samples cause no work here. A
// check takes 1 to 2 µs per process. After a slow check, the thread waits longer, so that checks use less than 2% of
// one CPU. Every kFlushNs, the same thread writes the log's changes to its store.
class ServiceWatch {
 public:
  static constexpr int64_t kPeriodNs = 20 * kNsPerSecond;
  static constexpr int64_t kPauseFactor = 50;
  static constexpr int64_t kFlushNs = kNsPerSecond;
  static constexpr int64_t kLookBackNs = 2 * kNsPerMinute;
  // If only build-ids show that programs of a service have changed, all these changes within this time count as one
  // rollout.
  static constexpr int64_t kTogetherNs = 10 * kNsPerMinute;

  struct Options {
    // The store that keeps versions across restarts. nullptr: versions are only in memory. An error status is logged
    // and counted, and versions are then only in memory.
    absl::StatusOr<std::unique_ptr<ServiceStateStore>> states = std::unique_ptr<ServiceStateStore>();
    int64_t keep_ns = 7 * kNsPerDay;
  };
  // All objects passed by reference must outlive the ServiceWatch. If `states` cannot be read, versions are only in
  // memory.
  ServiceWatch(Options options, store::Store& store, const ResourceJoiner& joiner, RolloutLog& log, const Clock& clock,
               Metrics& metrics);
  ~ServiceWatch() { Stop(); }

  void Start();
  void Stop();

  void Look();  // one check, as the thread does it; for tests

 private:
  void Run();
  absl::Status LookAt(uint32_t shard, UnixNs now, ServiceSightings* sightings);
  void Report(const ServiceTracker::Change& change);
  bool IsReported(const ServiceTracker::Change& change) const;
  void Save(UnixNs now);

  const int64_t keep_ns_;
  store::Store& store_;
  const ResourceJoiner& joiner_;
  RolloutLog& log_;
  const Clock& clock_;
  ServiceTracker tracker_;
  std::unique_ptr<ServiceStateStore> states_;  // nullptr: memory only
  Gauge& programs_;
  Counter &turned_away_, &muted_, &failures_;
  WriteRetry retry_;  // of states_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // set under mutex_; Look, which may run long, reads it without mutex_
  std::thread thread_;
};

}  // namespace tributary
