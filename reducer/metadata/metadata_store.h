#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/cold_entities.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/k8s_name_rules.h"
#include "reducer/metadata/live_entities.h"
#include "reducer/metadata/metadata_sink.h"
#include "reducer/metadata/metadata_upkeep.h"

namespace tributary {

// Stores hosts, containers, pods and similar entities over time (docs/metadata.md), as nodes and clusters describe
// them. It combines three classes:
//
//   LiveEntities    in memory: live entities, and entities that ended in the last minute (without a database: within
//                   `keep_ns`)
//   ColdEntities    entities that ended earlier, read from the database when a query looks at samples of their time
//   MetadataUpkeep  saves changes and removes old entities, on its own thread
//
// This class itself decides which entities to accept, and applies K8sNameRules to their attributes. A node may describe
// itself and its containers. Other entities from a node are refused and counted. Thread-safe, without a lock of its
// own. A thread that holds MetadataUpkeep's lock may acquire the lock of LiveEntities or of ColdEntities, but not both
// at the same time. Take does not use ColdEntities, so a loop that calls Take never waits for a read of the database.
class MetadataStore final : public MetadataSink {
 public:
  static constexpr int64_t kMarkUsedNs = MetadataUpkeep::kMarkUsedNs;
  using Cluster = LiveEntities::Cluster;

  struct Options {
    // The store that keeps entities across restarts. nullptr: entities are only in memory. An error status is logged
    // and counted, and entities are then only in memory.
    absl::StatusOr<std::unique_ptr<EntityStore>> store = std::unique_ptr<EntityStore>();
    int64_t keep_ns = 60 * kNsPerMinute;       // after an entity's end, if no sample was joined with it
    int64_t keep_used_ns = 7 * kNsPerDay;      // if a sample was joined with it: as long as samples are kept
    int64_t gone_in_memory_ns = kNsPerMinute;  // if there is a database
    size_t entities_max = 400'000;             // in memory
    size_t bytes_max = size_t{1} << 30;        // in memory
    size_t node_entities_max = 4'096;          // in memory, per node
    size_t clusters_max = 64;
    size_t nodes_max = 65'536;                // about 200 bytes each
    int64_t away_ns = 6 * 60 * kNsPerMinute;  // after this time without contact, a sender's entities end
    size_t cold_entities_max = 16'384;        // limit of entities that are cached from the database
    size_t cold_bytes_max = 128u << 20;       // limit of the memory of these entities
    EntityObserver* observer = nullptr;       // also sees the stored entities; must outlive the store; null: none
  };
  // `rules`, `names`, `clock` and `metrics` must outlive the store.
  MetadataStore(Options options, const K8sNameRules& rules, AttributeNames& names, const Clock& clock,
                Metrics& metrics);
  ~MetadataStore();  // flushes

  // Starts the upkeep's thread. For `mark_used`, see MetadataUpkeep::Start.
  void Start(std::function<void()> mark_used) { upkeep_->Start(std::move(mark_used)); }
  void Stop() { upkeep_->Stop(); }

  // MetadataSink
  void Connected(const MetadataSender& sender) override;
  void Disconnected(const MetadataSender& sender) override;
  void Take(const MetadataSender& sender, MetadataUpdate update) override;

  // Returns the entity's state at time `at`, as this sender described it. A found entity is marked as joined with a
  // sample.
  FoundEntity Find(EntityKind kind, const MetadataSender& sender, std::string_view id, UnixNs at) const;
  // Searches the clusters one by one. Returns the first entity for which `accept` returns true, or an empty
  // FoundInCluster.
  FoundInCluster FindInClusters(EntityKind kind, std::string_view id, UnixNs at,
                                absl::FunctionRef<bool(const Entity&)> accept) const;

  // Returns true if any cluster's watcher has sent something in the last 6 hours, and so may send more.
  bool ExpectsClusters() const;
  // Returns true if a cluster's watcher has begun to send a snapshot and has not ended it.
  bool IsReceivingSnapshot() const { return live_->IsReceivingSnapshot(); }
  // Returns true if this node has sent a container before.
  bool ExpectsContainers(std::string_view node_id) const { return live_->ExpectsContainers(node_id); }

  std::vector<Cluster> Clusters() const { return live_->Clusters(); }  // in order of arrival

  // Do what the upkeep's thread does from time to time. For tests.
  void Flush() { upkeep_->Flush(); }
  void Maintain() { upkeep_->Maintain(); }

 private:
  void TakeDatabase(absl::StatusOr<std::unique_ptr<EntityStore>> opened);

  const K8sNameRules& rules_;
  AttributeNames& names_;
  const Clock& clock_;
  Counter &updates_, &refused_, &failures_;
  std::unique_ptr<EntityStore> db_;  // nullptr: memory only
  std::unique_ptr<LiveEntities> live_;
  std::unique_ptr<ColdEntities> cold_;
  std::unique_ptr<MetadataUpkeep> upkeep_;
};

}  // namespace tributary
