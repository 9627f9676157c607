#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "profile/metadata.h"
#include "reducer/metadata/metadata_sink.h"
#include "reducer/store/opt_out_filter.h"

namespace tributary {

// The value of the annotation tributary.io/profile.
enum class ProfileChoice : uint8_t { kNone, kOff, kOn };
// Accepts false, off, no, 0 and true, on, yes, 1 in any case. nullopt: another value.
std::optional<ProfileChoice> ParseProfileChoice(std::string_view text);

// The containers that are opted out of profiling by an annotation of their pod or namespace (docs/opt-out.md). The
// metadata of clusters decides this; the annotation of a pod outranks that of its namespace. Store writers ask Drops.
// If they drop a record of a node's container, that container is added to the list of the node, and the node's session
// sends it (ingest/shard_core.h). So a node only gets ids of containers that it has named itself.
//
// A change of a pod costs the pod and its containers. A change of a namespace costs the namespace's pods, but only if
// its choice changes. If a pod or a container that is opted out ends, it stays opted out for a week: its samples may
// arrive late, and it also ends if its watcher is away for hours. But it leaves the lists of nodes. All methods may be
// called on any thread. One lock guards everything; no call does I/O. A look-up takes about 100 ns. A namespace with
// 10,000 pods that changes its choice holds the lock for some 10 ms. Memory: about 300 bytes for each pod and for each
// container of the clusters.
class OptOuts final : public store::OptOutList, public EntityObserver {
 public:
  static constexpr size_t kContainersOfNodeMax = 4'096;  // in the list of a node
  static constexpr size_t kNodesMax = 65'536;
  static constexpr size_t kEndedMax = 50'000;  // pods and containers that ended while they were opted out
  static constexpr int64_t kEndedKeptNs = 7 * kNsPerDay;

  // `clock` and `metrics` must outlive the object.
  OptOuts(const Clock& clock, Metrics& metrics);
  ~OptOuts();

  // EntityObserver
  void OnState(const MetadataSender& sender, const Entity& newest, bool gone) override;

  // store::OptOutList
  bool IsEmpty() const override { return opted_out_.load(std::memory_order_relaxed) == 0; }
  bool Drops(std::string_view node_id, std::string_view container_id, std::string_view cgroup_path) override;

  // Grows with each change of the list of any node.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  struct List {
    uint64_t version = 0;  // of this node's list; 0: the list is empty
    std::vector<std::string> containers;
  };
  // Returns the node's list, or nullopt if its version is `known`.
  std::optional<List> ListOf(std::string_view node_id, uint64_t known) const;

  uint64_t work() const { return work_.load(std::memory_order_relaxed); }  // visited pods and containers; for tests

 private:
  struct Choice {
    ProfileChoice value = ProfileChoice::kNone;
    bool is_bad = false;  // the annotation has another value
  };
  struct Namespace {
    Choice choice;
    bool is_known = false;  // the namespace itself exists, not only its pods
    absl::flat_hash_set<std::string> pods;
  };
  struct Pod {
    std::string name_space;
    Choice choice;
    bool is_known = false;  // false: only a container has named it yet
    bool has_ended = false;
    bool is_off = false;  // counted in off_pods_, and its containers in off_containers_
    absl::flat_hash_set<std::string> containers;
  };
  struct Container {
    std::string pod;
    bool has_ended = false;
  };
  struct Cluster {
    absl::flat_hash_map<std::string, Namespace> namespaces;
    absl::flat_hash_map<std::string, std::unique_ptr<Pod>> pods;
    absl::flat_hash_map<std::string, Container> containers;
  };
  struct Ended {
    std::string cluster;
    EntityKind kind{};
    std::string id;
    MonotonicNs at;
  };
  struct Node {
    uint64_t version = 0;
    absl::flat_hash_set<std::string> containers;
  };

  // The caller of these functions must hold mutex_.
  Choice ReadChoice(const Entity& entity, std::string_view key, Choice before);
  void OnNamespace(Cluster& cluster, const Entity& entity, bool gone);
  void OnPod(const std::string& cluster_id, Cluster& cluster, const Entity& entity, bool gone);
  void OnContainer(const std::string& cluster_id, Cluster& cluster, const Entity& entity, bool gone);
  Pod& FindOrAddPod(Cluster& cluster, const std::string& uid);
  void MovePod(Cluster& cluster, const std::string& uid, Pod& pod, std::string_view name_space);
  void Decide(Cluster& cluster, const std::string& uid, Pod& pod);
  void SetOff(const std::string& uid, Pod& pod, bool off);
  void CountContainer(const std::string& id, bool off);
  void Unlist(const std::string& id);
  bool IsLive(std::string_view id) const;
  void ErasePod(Cluster& cluster, const std::string& uid);
  void EraseContainer(Cluster& cluster, const std::string& id);
  void DropUnused(Cluster& cluster, const std::string& name_space);
  void KeepEnded(const std::string& cluster, EntityKind kind, const std::string& id);
  void ForgetEnded();
  void NoteNode(std::string_view node_id, std::string_view container_id);

  const Clock& clock_;
  Counter &bad_values_, &untold_;
  Gauge& containers_gauge_;
  std::atomic<size_t> opted_out_{0};  // pods and containers
  std::atomic<uint64_t> version_{0}, work_{0};

  mutable std::shared_mutex mutex_;  // guards everything below
  absl::flat_hash_map<std::string, Cluster> clusters_;
  absl::flat_hash_map<std::string, uint32_t> off_pods_, off_containers_;  // by id; value: the number of clusters
  absl::flat_hash_map<std::string, Node> nodes_;
  absl::flat_hash_map<std::string, std::vector<std::string>> nodes_of_;  // of the containers in the lists of nodes
  std::deque<Ended> ended_;                                              // in order of time
  absl::flat_hash_set<std::string> logged_;                              // bad values
};

}  // namespace tributary
