#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "profile/metadata.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/entity_timeline.h"
#include "reducer/metadata/k8s_name_rules.h"
#include "reducer/metadata/metadata_db.h"

namespace tributary {

// What nodes and clusters told of hosts, containers, pods, … in time (docs/metadata.md). In memory is what lives and
// what went in the last minute; what went before is in the database, and comes back through a small cache when samples
// of its time are looked at. A pod takes about 4 KB with its container, 64 KB at most each.
//
// A node is believed of itself and its containers; everything else it tells is refused and counted. Thread-safe: Find
// takes a shared lock for some 100 ns, Take the exclusive one for about a µs an entity.
class MetadataStore final : public MetadataSink {
 public:
  static constexpr int64_t kMarkUsedNs = 10 * kNsPerMinute;  // between two calls of Start's `mark_used`, at most

  struct Options {
    std::string path;                          // of the database; "": memory alone
    int64_t keep_ns = 60 * kNsPerMinute;       // what has gone, where no sample was joined with it
    int64_t keep_used_ns = 7 * kNsPerDay;      // where one was: as long as samples are kept
    int64_t gone_in_memory_ns = kNsPerMinute;  // where there is a database
    size_t entities_max = 400'000;             // in memory
    size_t bytes_max = size_t{1} << 30;        // in memory
    size_t node_entities_max = 4'096;          // in memory, of one node
    size_t clusters_max = 64;
    size_t nodes_max = 65'536;                // some 200 bytes each
    int64_t away_ns = 6 * 60 * kNsPerMinute;  // who is away so long is gone for good, with all that it told
    uint64_t db_bytes_max = uint64_t{4} << 30;
    size_t cold_entities_max = 16'384;   // that came back from the database,
    size_t cold_bytes_max = 128u << 20;  // and their memory
  };
  // `rules`, `names`, `clock` and `metrics` outlive the store. A database that cannot be opened is logged and gone
  // without.
  MetadataStore(Options options, const K8sNameRules& rules, AttributeNames& names, const Clock& clock,
                Metrics& metrics);
  ~MetadataStore();  // flushes

  // Begins the thread that flushes every second. `mark_used`, called on it now and then, looks up what the samples of
  // the last while belong to: what is found is kept with them. Empty: never.
  void Start(std::function<void()> mark_used);
  // Ends it. No call of `mark_used` comes later.
  void Stop();

  // MetadataSink
  void Connected(const MetadataTeller& teller) override;
  void Disconnected(const MetadataTeller& teller) override;
  void Take(const MetadataTeller& teller, MetadataUpdate update) override;

  // What a teller said of a thing. What is found counts as joined with a sample.
  FoundEntity Find(EntityKind kind, const MetadataTeller& teller, std::string_view id, UnixNs at) const;
  struct FoundInCluster : FoundEntity {
    MetadataTeller cluster;
  };
  // The same, of any cluster's watcher: the first that says what `accept` takes.
  FoundInCluster FindInClusters(EntityKind kind, std::string_view id, UnixNs at,
                                absl::FunctionRef<bool(const Entity&)> accept) const;

  // Whether a cluster's watcher told anything in the last hours: what it has not told yet may come.
  bool ExpectsClusters() const;
  // Whether a cluster's watcher is in the middle of telling all that it knows.
  bool HearsSnapshot() const;
  // Whether that node tells of its containers.
  bool ExpectsContainers(std::string_view node_id) const;

  struct Cluster {
    std::string id;
    bool connected = false;
    size_t entities = 0;
    UnixNs last_told;  // 0: not since the reducer started
  };
  std::vector<Cluster> Clusters() const;  // in the order in which they came

  // What the thread does; for tests.
  void Flush();
  void Maintain();

 private:
  using Key = std::pair<EntityKind, std::string>;
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
    mutable std::atomic<bool> used{false};
    bool used_saved = false;
    bool dirty = false;
    bool has_older = false;     // states before these are in the database
    bool ended_unseen = false;  // as in MetadataDb::Row
    uint32_t snapshot = 0;
    size_t bytes = 0;
  };
  using Records = absl::flat_hash_map<Key, std::unique_ptr<Record>, KeyHash, KeyEqual>;
  struct Told {
    MetadataTeller teller;
    Records records;
    uint32_t snapshot = 0;
    bool in_snapshot = false;
    bool tells_containers = false;
    int connections = 0;
    UnixNs last_told;
    UnixNs last_heard;  // of a connection, too
  };
  struct Cold {
    MetadataTeller teller;
    Key key;
    EntityTimeline timeline;  // without states: the database has none either
    size_t bytes = 0;
    bool used = false;  // since CollectUsed
  };
  // What memory says; `ask_database`: that may know better.
  struct Looked : FoundEntity {
    bool ask_database = false;
  };

  void Load();
  void OpenDatabase();
  Told* FindOrAddTeller(const MetadataTeller& teller, UnixNs now);
  bool IsAway(const Told& told, UnixNs now) const;
  bool MayTell(const MetadataTeller& teller, const Entity& entity);
  void TakeEntity(Told& told, Entity entity, UnixNs now);
  void EndSnapshot(Told& told, UnixNs now);
  void Changed(Told& told, const Key& key, Record& record);
  const Told* TellerOf(const MetadataTeller& teller) const;
  Looked Look(const Told* told, EntityKind kind, std::string_view id, UnixNs at) const;
  FoundEntity FindCold(const MetadataTeller& teller, EntityKind kind, std::string_view id, const Looked& looked,
                       UnixNs at) const;
  void ForgetCold(const MetadataTeller& teller, const Key& key);
  void DropGone(UnixNs now);
  std::vector<MetadataTeller> EndAway(UnixNs now);
  void ForgetAway(UnixNs now);
  std::vector<MetadataDb::Row> CollectUsed();
  std::vector<MetadataDb::Row> TakeDirty(std::vector<std::pair<Told*, Key>>* taken);
  void LogFailure(std::string_view what, const absl::Status& status);
  void Run();

  const Options options_;
  const K8sNameRules& rules_;
  AttributeNames& names_;
  const Clock& clock_;
  std::unique_ptr<MetadataDb> db_;

  mutable std::shared_mutex mutex_;
  absl::flat_hash_map<MetadataTeller, std::unique_ptr<Told>> tellers_;  // these are guarded by mutex_
  std::vector<Told*> clusters_;
  std::vector<std::pair<Told*, Key>> dirty_, trimmed_;  // to be saved; of which older states were dropped
  struct Gone {
    Told* told;
    Key key;
    UnixNs heard;
  };
  std::deque<Gone> gone_;  // of which most have gone still
  size_t entities_ = 0, bytes_ = 0;

  // What was looked up in the database, the latest first.
  using ColdKey = std::pair<MetadataTeller, Key>;
  mutable std::mutex cold_mutex_;
  mutable std::list<Cold> cold_;  // these are guarded by cold_mutex_
  mutable absl::flat_hash_map<ColdKey, std::list<Cold>::iterator> cold_by_key_;
  mutable size_t cold_bytes_ = 0;

  std::mutex flush_mutex_;  // one at a time writes the database
  LogLimit failure_log_{60 * kNsPerSecond};

  Counter &updates_, &refused_scope_, &refused_full_, &lost_states_, &failures_;
  Gauge &entities_gauge_, &bytes_gauge_, &tellers_gauge_;

  std::function<void()> mark_used_;
  std::mutex thread_mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by thread_mutex_
  std::thread thread_;
};

}  // namespace tributary
