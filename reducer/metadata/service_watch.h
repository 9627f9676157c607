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

// Notices rollouts of services that no cluster's watcher tells of: on a thread of its own it looks, every kPeriodNs, at
// the processes that were sampled lately in all shards, joins them, and puts what ServiceTracker finds into the log.
// Nothing is done when samples come in. A look takes 1 to 2 µs a process; where that is long there are longer pauses,
// so that it stays below 2% of one CPU.
class ServiceWatch {
 public:
  static constexpr int64_t kPeriodNs = 20 * kNsPerSecond;
  static constexpr int64_t kPauseFactor = 50;
  static constexpr int64_t kLookBackNs = 2 * kNsPerMinute;
  // Programs of one service that change together are one rollout, where only their build-ids tell.
  static constexpr int64_t kTogetherNs = 10 * kNsPerMinute;

  struct Options {
    // Where versions are kept over restarts. nullptr: memory alone. An error is logged and counted: memory alone, too.
    absl::StatusOr<std::unique_ptr<ServiceStateStore>> states = std::unique_ptr<ServiceStateStore>();
    int64_t keep_ns = 7 * kNsPerDay;
  };
  // What it borrows outlives it. States that cannot be read are gone without.
  ServiceWatch(Options options, store::Store& store, const ResourceJoiner& joiner, RolloutLog& log, const Clock& clock,
               Metrics& metrics);
  ~ServiceWatch() { Stop(); }

  void Start();
  void Stop();

  void Look();  // what the thread does; for tests

 private:
  // Of the executables of one shard that ran at the last look. Numbers of others may be given anew: all are read again
  // when one of them is met.
  using BuildIds = absl::flat_hash_map<uint32_t, std::string>;

  void Run();
  absl::Status LookAt(uint32_t shard, UnixNs now, ServiceSightings* sightings);
  void Tell(const ServiceTracker::Change& change);
  bool IsToldAlready(const ServiceTracker::Change& change) const;
  void Save(UnixNs now);
  void Fail(std::string_view what, const absl::Status& status);

  const int64_t keep_ns_;
  store::Store& store_;
  const ResourceJoiner& joiner_;
  RolloutLog& log_;
  const Clock& clock_;
  ServiceTracker tracker_;
  std::vector<BuildIds> build_ids_;
  std::unique_ptr<ServiceStateStore> states_;  // nullptr: memory alone
  LogLimit failure_log_{60 * kNsPerSecond};
  Gauge& programs_;
  Counter &turned_away_, &muted_, &failures_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // is set with mutex_; a look, which may be long, asks without
  std::thread thread_;
};

}  // namespace tributary
