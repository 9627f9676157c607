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

// A workload began to run another version.
struct Rollout {
  std::string cluster;                 // the watcher's node id; "": noticed here (service_watch.h)
  std::string kind, name_space, name;  // "deployment"; kServiceKind
  UnixNs at;                           // the first pod of that version was made, or process began
  Attributes attributes;               // rollout.*, rollout.previous.*, service.version, …
};
// Of what is noticed here. Name and namespace are the attributes service.name and service.namespace.
constexpr std::string_view kServiceKind = "service";

// The rollouts that clusters' watchers tell of, which are events, not states: they are taken out of what is told on its
// way to `rest`; and those that are noticed here. All are in memory, kRolloutsMax at most: then the oldest go of the
// cluster that told the most, or of those noticed here, so that nobody pushes out what others told; and in a store
// that outlives the reducer.
// Thread-safe.
class RolloutLog final : public MetadataSink {
 public:
  static constexpr size_t kRolloutsMax = 20'000;

  struct Options {
    // Where rollouts are kept over restarts. nullptr: memory alone. An error is logged and counted: memory alone, too.
    absl::StatusOr<std::unique_ptr<RolloutStore>> store = std::unique_ptr<RolloutStore>();
    int64_t keep_ns = 7 * kNsPerDay;
  };
  // `rest`, `clock` and `metrics` outlive the log. A store that cannot be read is gone without.
  RolloutLog(Options options, MetadataSink& rest, const Clock& clock, Metrics& metrics);

  void Connected(const MetadataTeller& teller) override { rest_.Connected(teller); }
  void Disconnected(const MetadataTeller& teller) override { rest_.Disconnected(teller); }
  void Take(const MetadataTeller& teller, MetadataUpdate update) override;

  // Of a service; `id` is of this rollout alone. False: it is known already.
  bool AddService(const std::string& id, UnixNs at, Attributes attributes);

  // Those within the range that `accept` takes, the newest first, at most `limit`.
  std::vector<Rollout> List(store::TimeRange range, size_t limit, absl::FunctionRef<bool(const Rollout&)> accept) const;

 private:
  using Key = std::pair<UnixNs, std::string>;  // its time; cluster, zero byte, id

  absl::Status Load();
  bool Add(const std::string& cluster, Entity entity);
  // False: it is none, or known already.
  bool Put(const std::string& cluster, const std::string& id, UnixNs at, Attributes attributes);
  std::map<Key, Rollout>::iterator OldestOfMost();
  void Forget(std::map<Key, Rollout>::iterator rollout);
  void DropOld();
  void Fail(std::string_view what, const absl::Status& status);

  const int64_t keep_ns_;
  MetadataSink& rest_;
  const Clock& clock_;
  mutable std::mutex mutex_;             // guards all that follows
  std::unique_ptr<RolloutStore> store_;  // nullptr: memory alone
  std::map<Key, Rollout> rollouts_;
  absl::flat_hash_set<std::string> known_;  // second parts of keys
  absl::flat_hash_map<std::string, std::set<Key>> by_cluster_;
  LogLimit failure_log_{60 * kNsPerSecond};
  Counter &taken_, &refused_, &dropped_, &failures_;
};

}  // namespace tributary
