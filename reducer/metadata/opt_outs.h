#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/log.h"
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
// its choice changes. If a pod that is opted out ends, it stays opted out for a week: its samples may arrive late, and
// it also ends if its watcher is away for hours. A container that ends stays opted out as long as its pod, if it is one
// of the last 16 of the pod. But ended pods and containers leave the lists of nodes. All methods may be called on any
// thread. One lock guards everything; no call does I/O. A look-up takes about 100 ns. A namespace with 10,000 pods that
// changes its choice holds the lock for some 10 ms. Memory: about 300 bytes for each pod and for each container of the
// clusters.
class OptOuts final : public store::OptOutList, public EntityObserver {
 public:
  static constexpr size_t kContainersOfNodeMax = 4'096;  // in the list of a node
  static constexpr size_t kNodesMax = 65'536;
  static constexpr size_t kEndedMax = 50'000;        // pods that ended while they were opted out
  static constexpr size_t kStoredEndsMax = 100'000;  // of each kind, read at a start
  static constexpr size_t kEndedContainersOfPodMax = 16;
  static constexpr size_t kNamedContainersOfPodMax = 64;  // containers that only nodes know
  static constexpr int64_t kEndedKeptNs = 7 * kNsPerDay;

  // `clock` and `metrics` must outlive the object.
  OptOuts(const Clock& clock, Metrics& metrics);
  ~OptOuts();

  // EntityObserver
  void OnState(const MetadataSender& sender, const Entity& newest, bool gone) override;
  void OnStoredEnd(const MetadataSender& sender, const Entity& newest, UnixNs at) override;
  void OnLoaded() override;

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
    MonotonicNs ended_at;  // valid if has_ended
    bool is_off = false;   // counted in off_pods_, and its containers in off_containers_
    absl::flat_hash_set<std::string> containers;
    std::deque<std::string> ended_containers;     // in order of time; some may be back
    absl::flat_hash_set<std::string> named_only;  // in lists of nodes, but not reported by the cluster
  };
  struct Container {
    std::string pod;
    bool has_ended = false;
  };
  struct Ended {
    std::string pod;
    MonotonicNs at;
  };
  struct Cluster {
    absl::flat_hash_map<std::string, Namespace> namespaces;
    absl::flat_hash_map<std::string, std::unique_ptr<Pod>> pods;
    absl::flat_hash_map<std::string, Container> containers;
    std::deque<Ended> ended;  // in order of time
  };
  struct StoredEnd {
    std::string cluster;
    Entity entity;
    UnixNs at;
  };
  struct Node {
    uint64_t version = 0;
    absl::flat_hash_set<std::string> containers;
  };

  // The caller of these functions must hold mutex_.
  Choice ReadChoice(const Entity& entity, std::string_view key, Choice before);
  void Take(Cluster& cluster, const Entity& entity, bool gone, MonotonicNs at);
  void OnNamespace(Cluster& cluster, const Entity& entity, bool gone);
  void OnPod(Cluster& cluster, const Entity& entity, bool gone, MonotonicNs at);
  void OnContainer(Cluster& cluster, const Entity& entity, bool gone);
  void KeepContainer(Cluster& cluster, const std::string& uid, Pod& pod, const std::string& id);
  Pod& FindOrAddPod(Cluster& cluster, const std::string& uid);
  void MovePod(Cluster& cluster, const std::string& uid, Pod& pod, std::string_view name_space);
  void Decide(Cluster& cluster, const std::string& uid, Pod& pod);
  void SetOff(const std::string& uid, Pod& pod, bool off);
  void CountContainer(const std::string& id, bool off);
  void Unlist(const std::string& id);
  void UnlistPod(Pod& pod);
  bool IsLive(std::string_view id) const;
  bool IsKnown(const Cluster& cluster, const Entity& entity) const;
  Pod* FindLiveOff(std::string_view uid) const;
  void ErasePod(Cluster& cluster, const std::string& uid);
  void EraseContainer(Cluster& cluster, const std::string& id);
  void DropUnused(Cluster& cluster, const std::string& name_space);
  void ForgetEnded();
  bool ForgetOldest(Cluster& cluster);
  void Publish();
  void NoteNode(std::string_view node_id, std::string_view container_id, std::string_view pod_uid);

  const Clock& clock_;
  Counter &bad_values_, &untold_, &forgotten_;
  Gauge& containers_gauge_;
  std::atomic<size_t> opted_out_{0};  // pods and containers
  std::atomic<uint64_t> version_{0}, work_{0};

  mutable std::shared_mutex mutex_;  // guards everything below
  absl::flat_hash_map<std::string, Cluster> clusters_;
  absl::flat_hash_map<std::string, uint32_t> off_pods_, off_containers_;  // by id; value: the number of clusters
  absl::flat_hash_map<std::string, Node> nodes_;
  absl::flat_hash_map<std::string, std::vector<std::string>> nodes_of_;  // of the containers in the lists of nodes
  size_t ended_ = 0;                                                     // entries in Cluster::ended
  std::map<EntityKind, std::vector<StoredEnd>> stored_ends_;             // until OnLoaded
  LogLimit log_limit_{10 * kNsPerSecond};                                // of bad values
};

}  // namespace tributary
