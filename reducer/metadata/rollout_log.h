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
#include "base/metrics.h"
#include "reducer/metadata/metadata_sink.h"
#include "reducer/metadata/rollout_store.h"
#include "reducer/metadata/write_retry.h"
#include "reducer/store/store.h"

namespace tributary {

// A rollout: the time when a workload began to run another version.
struct Rollout {
  std::string cluster;                 // the watcher's node id; "": detected by this reducer (service_watch.h)
  std::string kind, name_space, name;  // `kind`: "deployment" or another workload kind, or kServiceKind
  UnixNs at;                           // creation of the first pod of that version, or start of its first process
  Attributes attributes;               // rollout.*, rollout.previous.*, service.version, …
  // The order in which this reducer got the rollouts. A rollout that is reported again after it was dropped has another
  // number.
  int64_t no = 0;
};
// The kind of rollouts that this reducer detects itself. In such a rollout, `name` and `name_space` are the attributes
// service.name and service.namespace.
constexpr std::string_view kServiceKind = "service";

// Collects the rollouts that clusters' watchers (k8s-collectors) report, and those that this reducer detects. Rollouts
// are events, not states of entities. So Take removes them from an update before it passes the update to `rest`. All
// rollouts are in memory, at most kRolloutsMax. Above this limit, the log drops the oldest rollout of the source (a
// cluster, or this reducer) that has the most rollouts. So a source with many rollouts cannot evict those of a source
// with few.
//
// If there is a store, the rollouts survive a restart. Only Flush and the destructor write to the store; ServiceWatch's
// thread calls Flush every second. The unwritten changes are in memory: at most the rollouts of the log, and those that
// were dropped since the last write. If the disk is full, they wait there (WriteRetry), and none of them is lost.
//
// Thread-safe. No other method waits for the store.
class RolloutLog final : public MetadataSink {
 public:
  static constexpr size_t kRolloutsMax = 20'000;
  static constexpr size_t kListedBytesMax = 4u << 20;  // attributes in one answer of ListBehind, and one rollout more

  struct Options {
    // The store that keeps rollouts across restarts. nullptr: rollouts are only in memory. An error status is logged
    // and counted, and rollouts are then only in memory.
    absl::StatusOr<std::unique_ptr<RolloutStore>> store = std::unique_ptr<RolloutStore>();
    int64_t keep_ns = 7 * kNsPerDay;  // older rollouts are removed
  };
  // `rest`, `clock` and `metrics` must outlive the log. If the store cannot be read, rollouts are only in memory.
  RolloutLog(Options options, MetadataSink& rest, const Clock& clock, Metrics& metrics);
  ~RolloutLog();  // flushes

  void Connected(const MetadataSender& sender) override { rest_.Connected(sender); }
  void Disconnected(const MetadataSender& sender) override { rest_.Disconnected(sender); }
  void Take(const MetadataSender& sender, MetadataUpdate update) override;

  // Adds a rollout that this reducer has detected. `id` must be unique among these rollouts. Returns false if the
  // rollout is invalid or is already in the log.
  bool AddService(const std::string& id, UnixNs at, Attributes attributes);

  // Writes the changes since the last call to the store. Returns the store's error; the changes then stay in memory.
  // Unavailable: the pause after a failed write is not over.
  absl::Status Flush();

  // Returns the rollouts within the range for which `accept` returns true, newest first, but at most `limit`.
  std::vector<Rollout> List(store::TimeRange range, size_t limit, absl::FunctionRef<bool(const Rollout&)> accept) const;

  struct Numbered {
    std::vector<Rollout> rollouts;
    int64_t next = 0;     // the number of the last one, or `no`. 0: `no` belongs to data that no longer exist
    bool is_cut = false;  // more rollouts follow, because a limit was reached
  };
  // Returns rollouts with a higher number than `no`, in the order of their numbers, but at most `limit` and about
  // kListedBytesMax. If there is a store, leaves out those that are not in the store yet: after a kill they could get
  // another number. For exporters.
  Numbered ListBehind(int64_t no, size_t limit) const;

 private:
  using Key = std::pair<UnixNs, std::string>;  // time; cluster, zero byte, id

  // Changes that Flush writes at once.
  struct Changes {
    std::vector<Key> added_keys;
    std::vector<RolloutStore::Row> added, removed;
    bool empty() const { return added.empty() && removed.empty(); }
  };

  absl::Status Load();
  absl::Status Write();
  Changes TakeChanges();
  void GiveBack(Changes changes);
  bool Add(const std::string& cluster, Entity entity);
  // Returns false if the rollout is invalid or known already.
  bool Put(const std::string& cluster, const std::string& id, UnixNs at, Attributes attributes, int64_t no);
  std::map<Key, Rollout>::iterator OldestOfMost();
  void Forget(std::map<Key, Rollout>::iterator rollout);
  void DropOld();

  const int64_t keep_ns_;
  MetadataSink& rest_;
  const Clock& clock_;
  Counter &taken_, &refused_, &dropped_, &failures_;

  // A thread that holds store_mutex_ may acquire mutex_, but not the other way round.
  std::mutex store_mutex_;               // guards the next two members
  std::unique_ptr<RolloutStore> store_;  // nullptr: memory only
  WriteRetry retry_;
  bool is_stored_ = false;  // the stored rollouts were read; only the constructor changes it

  mutable std::mutex mutex_;  // guards everything below
  std::map<Key, Rollout> rollouts_;
  absl::flat_hash_set<std::string> known_;  // second parts of the keys of rollouts_
  absl::flat_hash_map<std::string, std::set<Key>> by_cluster_;
  std::map<int64_t, Key> by_number_;
  int64_t last_number_ = 0;
  // Not in the store yet: rollouts to add, and second parts of the keys of rollouts to remove.
  std::set<Key> unsaved_;
  std::set<int64_t> unsaved_numbers_;  // also those that are being written
  absl::flat_hash_set<std::string> unremoved_;
};

}  // namespace tributary
