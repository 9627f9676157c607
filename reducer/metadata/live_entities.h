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

// An entity in memory, at one time.
struct LiveEntity : FoundEntity {
  bool ask_database = false;  // the database may know of an earlier state
};
struct FoundInCluster : FoundEntity {
  MetadataTeller cluster;
};

// The entities in memory: those that live, and those that ended less than `gone_kept_ns` ago. It also remembers the
// work that it makes for MetadataUpkeep: entities to save, entities to drop, tellers that are away.
//
// A pod takes about 4 KB with its container, 64 KB at most each. Thread-safe: one lock guards everything, shared for
// a look-up (some 100 ns), exclusive for a change (about a µs an entity). No call does I/O.
class LiveEntities {
 public:
  struct Options {
    bool has_database = false;  // older states may be found there
    int64_t gone_kept_ns = kNsPerMinute;
    int64_t away_ns = 6 * 60 * kNsPerMinute;
    size_t entities_max = 400'000;
    size_t bytes_max = size_t{1} << 30;
    size_t node_entities_max = 4'096;  // of one node
    size_t clusters_max = 64;
    size_t nodes_max = 65'536;  // some 200 bytes each
  };
  using Key = std::pair<EntityKind, std::string>;

 private:
  struct Source;  // everything of one teller

 public:
  // Names one entity of one teller. Becomes invalid when ForgetTellers removes the teller; only MetadataUpkeep, which
  // calls that, holds any.
  class Ref {
   public:
    const MetadataTeller& teller() const;
    const Key& key() const { return key_; }

   private:
    friend class LiveEntities;
    Ref(Source* source, Key key) : source_(source), key_(std::move(key)) {}
    Source* source_;
    Key key_;
  };

  // `refused`, which counts entities that there is no room for, and `metrics` outlive it.
  LiveEntities(const Options& options, Counter& refused, Metrics& metrics);
  ~LiveEntities();

  // ---- Changes, as MetadataSink describes them

  void Connected(const MetadataTeller& teller, UnixNs now);
  void Disconnected(const MetadataTeller& teller, UnixNs now);
  void Take(const MetadataTeller& teller, MetadataUpdate update, UnixNs now);

  // ---- Look-ups. An entity that is found counts as joined with a sample.

  LiveEntity Find(EntityKind kind, const MetadataTeller& teller, std::string_view id, UnixNs at) const;
  // Looks in every cluster. Returns the first entity that `accept` takes, or nothing if there is none; clusters whose
  // older states only the database has are added to `unsure`.
  std::optional<FoundInCluster> FindInClusters(EntityKind kind, std::string_view id, UnixNs at,
                                               absl::FunctionRef<bool(const Entity&)> accept,
                                               std::vector<std::pair<MetadataTeller, LiveEntity>>* unsure) const;

  // Whether any cluster's watcher has sent something since `since`.
  bool HeardClustersSince(UnixNs since) const;
  // Whether a cluster's watcher is in the middle of a snapshot.
  bool HearsSnapshot() const;
  // Whether this node has sent containers.
  bool ExpectsContainers(std::string_view node_id) const;

  struct Cluster {
    std::string id;
    bool connected = false;
    size_t entities = 0;
    UnixNs last_told;  // 0: not since the reducer started
  };
  std::vector<Cluster> Clusters() const;  // in the order in which they came

  struct Totals {
    size_t entities = 0, bytes = 0;
  };
  Totals totals() const;

  // ---- For MetadataUpkeep: one thread at a time

  // Adds an entity of the database. Returns false if memory is full.
  bool Restore(const EntityStore::Row& row, UnixNs now);
  // Adds the teller if there is room, and notes that it was heard of.
  void AddTeller(const MetadataTeller& teller, UnixNs now);

  // Returns at most `count_max` changed entities, which count as saved from now on; `taken` names them.
  std::vector<EntityStore::Row> TakeChanges(size_t count_max, std::vector<Ref>* taken);
  // They were not saved: they count as changed again.
  void GiveBack(std::vector<Ref> taken);
  // There is no database: whatever changed counts as saved.
  void DiscardChanges();
  // Returns the entities whose older states were dropped from memory since the last call.
  std::vector<Ref> TakeTrimmed();
  // Appends one row without states for each entity that was joined with its first sample since it was saved.
  void TakeUsed(std::vector<EntityStore::Row>* rows);

  // Ends the entities of every teller that is away, at the time at which it was heard of last. Returns the tellers of
  // which nothing is in memory.
  std::vector<MetadataTeller> EndAway(UnixNs now);
  // Removes these tellers, unless they came back.
  void ForgetTellers(const std::vector<MetadataTeller>& leaving, UnixNs now);

  // Returns the entities that ended longer than `gone_kept_ns` ago and are saved. They stay until DropGone.
  std::vector<Ref> TakeGone(UnixNs now);
  // Removes them, unless they came back; one whose use is not saved yet stays for another `gone_kept_ns`.
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
    mutable std::atomic<bool> used{false};  // set under the shared lock, too
    bool used_saved = false;
    bool dirty = false;
    bool has_older = false;     // states before these are in the database
    bool ended_unseen = false;  // as in EntityStore::Row
    uint32_t snapshot = 0;
    size_t bytes = 0;
  };
  using Records = absl::flat_hash_map<Key, std::unique_ptr<Record>, KeyHash, KeyEqual>;
  struct Source {
    MetadataTeller teller;  // never changes
    Records records;
    uint32_t snapshot = 0;
    bool in_snapshot = false;
    bool tells_containers = false;
    int connections = 0;
    UnixNs last_told;
    UnixNs last_heard;  // of a connection, too
  };
  struct Gone {
    Ref entity;
    UnixNs heard;
  };

  // All of these are called with mutex_ held.
  Source* FindOrAddSource(const MetadataTeller& teller, UnixNs now);
  const Source* FindSource(const MetadataTeller& teller) const;
  bool IsAway(const Source& source, UnixNs now) const;
  bool IsFull() const;
  void TakeEntity(Source& source, Entity entity, UnixNs now);
  void EndSnapshot(Source& source, UnixNs now);
  void Changed(Source& source, const Key& key, Record& record);
  LiveEntity Look(const Source* source, EntityKind kind, std::string_view id, UnixNs at) const;
  void SetGauges();

  const Options options_;
  Counter &refused_, &lost_states_;
  Gauge &entities_gauge_, &bytes_gauge_, &tellers_gauge_;

  mutable std::shared_mutex mutex_;  // guards everything below
  absl::flat_hash_map<MetadataTeller, std::unique_ptr<Source>> sources_;
  std::vector<Source*> clusters_;  // those of sources_, in the order in which they came
  std::vector<Ref> dirty_;         // to be saved
  std::vector<Ref> trimmed_;       // older states were dropped
  std::deque<Gone> gone_;          // ended; most of them have not come back
  size_t entities_ = 0, bytes_ = 0;
};

inline const MetadataTeller& LiveEntities::Ref::teller() const { return source_->teller; }

}  // namespace tributary
