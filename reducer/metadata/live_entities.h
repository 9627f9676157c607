#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/metrics.h"
#include "profile/metadata.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/entity_timeline.h"
#include "reducer/metadata/metadata_sink.h"

namespace tributary {

// The state of an entity at the requested time, as far as it is in memory.
struct LiveEntity : FoundEntity {
  bool ask_database = false;  // the database may have an earlier state
};
struct FoundInCluster : FoundEntity {
  MetadataSender cluster;
};

// The entities in memory: all live entities, and the entities that ended less than `gone_kept_ns` ago. This class also
// collects the work for MetadataUpkeep: entities to save, entities to remove, and senders that are away (without a
// connection for `away_ns`).
//
// A pod and its container together take about 4 KB. The attributes of one state of an entity have at most 64 KB.
// Thread-safe: one lock guards everything. A look-up acquires the lock in shared mode, for about 100 ns. A change
// acquires it in exclusive mode, for about 1 µs per entity. No call does I/O.
class LiveEntities {
 public:
  struct Options {
    bool has_database = false;  // older states may be in the database
    int64_t gone_kept_ns = kNsPerMinute;
    int64_t away_ns = 6 * 60 * kNsPerMinute;
    size_t entities_max = 400'000;
    size_t bytes_max = size_t{1} << 30;
    size_t node_entities_max = 4'096;  // per node
    size_t clusters_max = 64;
    size_t nodes_max = 65'536;           // about 200 bytes each
    EntityObserver* observer = nullptr;  // must outlive the object; null: none
  };
  using Key = std::pair<EntityKind, std::string>;

 private:
  struct Source;  // all data of one sender

 public:
  // Identifies one entity of one sender. Becomes invalid when ForgetSenders removes the sender. So only MetadataUpkeep
  // may keep a Ref, because it is the only caller of ForgetSenders.
  class Ref {
   public:
    const MetadataSender& sender() const;
    const Key& key() const { return key_; }

   private:
    friend class LiveEntities;
    Ref(Source* source, Key key) : source_(source), key_(std::move(key)) {}
    Source* source_;
    Key key_;
  };

  // `refused` and `metrics` must outlive this object. `refused` counts entities that were refused because a limit was
  // reached.
  LiveEntities(const Options& options, Counter& refused, Metrics& metrics);
  ~LiveEntities();

  // ---- Changes: the methods of MetadataSink, with the time

  void Connected(const MetadataSender& sender, UnixNs now);
  void Disconnected(const MetadataSender& sender, UnixNs now);
  void Take(const MetadataSender& sender, MetadataUpdate update, UnixNs now);

  // ---- Look-ups. A found entity counts as joined with a sample.

  LiveEntity Find(EntityKind kind, const MetadataSender& sender, std::string_view id, UnixNs at) const;
  // Searches the clusters one by one. Returns the first entity for which `accept` returns true, or nullopt. Appends to
  // `unsure` each searched cluster that may have the entity's state at `at` in the database only.
  std::optional<FoundInCluster> FindInClusters(EntityKind kind, std::string_view id, UnixNs at,
                                               absl::FunctionRef<bool(const Entity&)> accept,
                                               std::vector<std::pair<MetadataSender, LiveEntity>>* unsure) const;

  // Returns true if any cluster's watcher has sent something since `since`.
  bool AnyClusterSentSince(UnixNs since) const;
  // Returns true if a cluster's watcher has begun to send a snapshot and has not ended it.
  bool IsReceivingSnapshot() const;
  // Returns true if this node has sent a container before.
  bool ExpectsContainers(std::string_view node_id) const;

  struct Cluster {
    std::string id;
    bool connected = false;
    size_t entities = 0;
    UnixNs last_update;  // 0: nothing since the reducer started
  };
  std::vector<Cluster> Clusters() const;  // in order of arrival

  struct Totals {
    size_t entities = 0, bytes = 0;
  };
  Totals totals() const;

  // ---- For MetadataUpkeep: only one thread at a time may call these

  // Adds an entity from the database. Returns false if a limit is reached.
  bool Restore(const EntityStore::Row& row, UnixNs now);
  // Shows a stored entity that has ended, or the end of the load, to the observer only.
  void ObserveEnd(const EntityStore::Row& row);
  void ObserveLoaded();
  bool is_observed() const { return options_.observer != nullptr; }
  // Adds the sender if the limits allow it, and updates its last_contact.
  void AddSender(const MetadataSender& sender, UnixNs now);

  // Returns at most `count_max` changed entities, and marks them as saved. Stores their Refs in `taken`, for GiveBack.
  std::vector<EntityStore::Row> TakeChanges(size_t count_max, std::vector<Ref>* taken);
  // Marks these entities as changed again. Call it if saving them has failed.
  void GiveBack(std::vector<Ref> taken);
  // Marks all changed entities as saved. Call it if there is no database.
  void DiscardChanges();
  // Returns the entities of which older states were removed from memory since the last call.
  std::vector<Ref> TakeTrimmed();
  // Appends one row for each entity that has been joined with a sample but was saved without this fact. The row has no
  // states, so saving it only sets `used`.
  void TakeUsed(std::vector<EntityStore::Row>* rows);

  // Ends the entities of each sender that is away. Their end is the time of the sender's last contact. Returns the
  // senders that are away and have no entities in memory any more.
  std::vector<MetadataSender> EndAway(UnixNs now);
  // Removes these senders, except those that are no longer away or have entities again.
  void ForgetSenders(const std::vector<MetadataSender>& leaving, UnixNs now);

  // Returns the entities of which the end was reported more than `gone_kept_ns` ago, in the order of these reports.
  // Stops at the first entity that is not saved yet. The returned entities stay in memory until DropGone.
  std::vector<Ref> TakeGone(UnixNs now);
  // Removes these entities from memory, except those that were reported again. If an entity was joined with a
  // sample and this fact is not saved yet, the entity stays for another `gone_kept_ns`.
  void DropGone(std::vector<Ref> leaving, UnixNs now);

 private:
  struct KeyHash {
    using is_transparent = void;
    size_t operator()(const std::pair<EntityKind, std::string_view>& key) const {
      return absl::Hash<std::pair<EntityKind, std::string_view>>()(key);
    }
    size_t operator()(const Key& key) const { return (*this)(std::pair(key.first, std::string_view(key.second))); }
  };
  struct KeyEqual {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return a.first == b.first && std::string_view(a.second) == std::string_view(b.second);
    }
  };
  struct Record {
    EntityTimeline timeline;
    mutable std::atomic<bool> used{false};  // also set under the shared lock
    bool used_saved = false;
    bool dirty = false;
    bool has_older = false;     // earlier states are in the database
    bool ended_unseen = false;  // as in EntityStore::Row
    uint32_t snapshot = 0;
    size_t bytes = 0;
  };
  using Records = absl::flat_hash_map<Key, std::unique_ptr<Record>, KeyHash, KeyEqual>;
  struct Source {
    MetadataSender sender;  // never changes
    Records records;
    uint32_t snapshot = 0;
    bool in_snapshot = false;
    bool sent_containers = false;
    int connections = 0;
    UnixNs last_update;
    UnixNs last_contact;  // also updated when the sender connects or disconnects
  };
  struct Gone {
    Ref entity;
    UnixNs added_at;
  };

  // The caller of these functions must hold mutex_.
  Source* FindOrAddSource(const MetadataSender& sender, UnixNs now);
  const Source* FindSource(const MetadataSender& sender) const;
  bool IsAway(const Source& source, UnixNs now) const;
  bool IsFull() const;
  void TakeEntity(Source& source, Entity entity, UnixNs now);
  void EndSnapshot(Source& source, UnixNs now);
  void Changed(Source& source, const Key& key, Record& record);
  void Observe(const Source& source, const Record& record) const;
  LiveEntity Look(const Source* source, EntityKind kind, std::string_view id, UnixNs at) const;
  void SetGauges();

  const Options options_;
  Counter &refused_, &lost_states_;
  Gauge &entities_gauge_, &bytes_gauge_, &senders_gauge_;

  mutable std::shared_mutex mutex_;  // guards everything below
  absl::flat_hash_map<MetadataSender, std::unique_ptr<Source>> sources_;
  std::vector<Source*> clusters_;  // the clusters of sources_, in order of arrival
  std::vector<Ref> dirty_;         // to be saved
  std::vector<Ref> trimmed_;       // older states were dropped
  std::deque<Gone> gone_;          // ended entities; some may have been reported again
  size_t entities_ = 0, bytes_ = 0;
};

inline const MetadataSender& LiveEntities::Ref::sender() const { return source_->sender; }

}  // namespace tributary
