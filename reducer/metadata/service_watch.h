#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/metadata/service_state_store.h"
#include "reducer/metadata/service_tracker.h"
#include "reducer/store/store.h"

namespace tributary {

// Detects rollouts of services that no cluster's watcher reports. On its own thread, every kPeriodNs, it looks at the
// recently sampled processes of all shards and joins them. It adds the rollouts that ServiceTracker finds to the log.
// It does no work when samples arrive. A look takes 1 to 2 µs per process. If a look takes long, the pauses are longer,
// so that it stays below 2% of one CPU.
class ServiceWatch {
 public:
  static constexpr int64_t kPeriodNs = 20 * kNsPerSecond;
  static constexpr int64_t kPauseFactor = 50;
  static constexpr int64_t kLookBackNs = 2 * kNsPerMinute;
  // Programs of one service that change within this time are one rollout, if only their build-ids show the change.
  static constexpr int64_t kTogetherNs = 10 * kNsPerMinute;

  struct Options {
    // Stores versions across restarts. nullptr: memory only. An error is logged and counted; then memory only, too.
    absl::StatusOr<std::unique_ptr<ServiceStateStore>> states = std::unique_ptr<ServiceStateStore>();
    int64_t keep_ns = 7 * kNsPerDay;
  };
  // Borrowed objects must outlive it. If the states cannot be read, it works without them.
  ServiceWatch(Options options, store::Store& store, const ResourceJoiner& joiner, RolloutLog& log, const Clock& clock,
               Metrics& metrics);
  ~ServiceWatch() { Stop(); }

  void Start();
  void Stop();

  void Look();  // the work of the thread; for tests

 private:
  // Build-ids of the executables of one shard that ran at the last look. Numbers of other executables may be reused, so
  // an unknown number makes a look read all executables again.
  using BuildIds = absl::flat_hash_map<uint32_t, std::string>;

  void Run();
  absl::Status LookAt(uint32_t shard, UnixNs now, ServiceSightings* sightings);
  void Report(const ServiceTracker::Change& change);
  bool IsReported(const ServiceTracker::Change& change) const;
  void Save(UnixNs now);
  void Fail(std::string_view operation, const absl::Status& status);

  const int64_t keep_ns_;
  store::Store& store_;
  const ResourceJoiner& joiner_;
  RolloutLog& log_;
  const Clock& clock_;
  ServiceTracker tracker_;
  std::vector<BuildIds> build_ids_;
  std::unique_ptr<ServiceStateStore> states_;  // nullptr: memory only
  LogLimit failure_log_{60 * kNsPerSecond};
  Gauge& programs_;
  Counter &turned_away_, &muted_, &failures_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // set under mutex_; a look, which may be long, reads it without mutex_
  std::thread thread_;
};

}  // namespace tributary
