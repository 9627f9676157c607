#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/metadata/metadata_sink.h"
#include "reducer/metadata/rollout_store.h"
#include "reducer/store/store.h"

namespace tributary {

// A rollout: the time when a workload began to run another version.
struct Rollout {
  std::string cluster;                 // the watcher's node id; "": detected by this reducer (service_watch.h)
  std::string kind, name_space, name;  // `kind`: "deployment" or another workload kind, or kServiceKind
  UnixNs at;                           // creation of the first pod of that version, or start of its first process
  Attributes attributes;               // rollout.*, rollout.previous.*, service.version, …
};
// The kind of rollouts that this reducer detects itself. In such a rollout, `name` and `name_space` are the attributes
// service.name and service.namespace.
constexpr std::string_view kServiceKind = "service";

// Collects the rollouts that clusters' watchers (k8s-collectors) report, and those that this reducer detects. Rollouts
// are events, not states of entities. So Take removes them from an update before it passes the update to `rest`. All
// rollouts are in memory, at most kRolloutsMax. Above this limit, the log drops the oldest rollout of the source (a
// cluster, or this reducer) that has the most rollouts. So a source with many rollouts cannot evict those of a source
// with few. If there is a store, the rollouts are also stored there, and survive a restart. Thread-safe.
class RolloutLog final : public MetadataSink {
 public:
  static constexpr size_t kRolloutsMax = 20'000;

  struct Options {
    // The store that keeps rollouts across restarts. nullptr: rollouts are only in memory. An error status is logged
    // and counted, and rollouts are then only in memory.
    absl::StatusOr<std::unique_ptr<RolloutStore>> store = std::unique_ptr<RolloutStore>();
    int64_t keep_ns = 7 * kNsPerDay;  // older rollouts are removed
  };
  // `rest`, `clock` and `metrics` must outlive the log. If the store cannot be read, rollouts are only in memory.
  RolloutLog(Options options, MetadataSink& rest, const Clock& clock, Metrics& metrics);

  void Connected(const MetadataSender& sender) override { rest_.Connected(sender); }
  void Disconnected(const MetadataSender& sender) override { rest_.Disconnected(sender); }
  void Take(const MetadataSender& sender, MetadataUpdate update) override;

  // Adds a rollout that this reducer has detected. `id` must be unique among these rollouts. Returns false if the
  // rollout is invalid or is already in the log.
  bool AddService(const std::string& id, UnixNs at, Attributes attributes);

  // Returns the rollouts within the range for which `accept` returns true, newest first, but at most `limit`.
  std::vector<Rollout> List(store::TimeRange range, size_t limit, absl::FunctionRef<bool(const Rollout&)> accept) const;

 private:
  using Key = std::pair<UnixNs, std::string>;  // time; cluster, zero byte, id

  absl::Status Load();
  bool Add(const std::string& cluster, Entity entity);
  // Returns false if the rollout is invalid or known already.
  bool Put(const std::string& cluster, const std::string& id, UnixNs at, Attributes attributes);
  std::map<Key, Rollout>::iterator OldestOfMost();
  void Forget(std::map<Key, Rollout>::iterator rollout);
  void DropOld();
  void Fail(std::string_view operation, const absl::Status& status);

  const int64_t keep_ns_;
  MetadataSink& rest_;
  const Clock& clock_;
  mutable std::mutex mutex_;             // guards everything below
  std::unique_ptr<RolloutStore> store_;  // nullptr: memory only
  std::map<Key, Rollout> rollouts_;
  absl::flat_hash_set<std::string> known_;  // second parts of the keys of rollouts_
  absl::flat_hash_map<std::string, std::set<Key>> by_cluster_;
  LogLimit failure_log_{60 * kNsPerSecond};
  Counter &taken_, &refused_, &dropped_, &failures_;
};

}  // namespace tributary
