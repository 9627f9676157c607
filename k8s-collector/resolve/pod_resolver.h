#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "intake/metadata/metadata_feed.h"
#include "k8s-collector/resolve/kube_entities.h"
#include "k8s-collector/resolve/marked_table.h"
#include "k8s-collector/resolve/rollout_tracker.h"
#include "k8s-collector/watch/resource_watch.h"

namespace tributary {

// Converts the events of a ClusterWatch into entities for reducers: pods with their owners, containers, workloads,
// namespaces, nodes, the cluster and rollouts. Passes the entities to a MetadataFeed, which stores them. A pod does not
// wait for its owner: it is passed at once, and again when its owner's owner becomes known. The resolver itself keeps
// only the data that it needs to update a pod: about 300 bytes per pod. Use it on the thread of its owner.
class PodResolver : public WatchEvents {
 public:
  struct Options {
    std::string cluster_name;  // "" = none
    size_t pods_max = 200'000;
    size_t containers_max = 1'000'000;
    size_t owners_max = 500'000;  // ReplicaSets and Jobs
    size_t named_max = 200'000;   // total of the other kinds
  };
  static constexpr size_t kRolloutsMax = 256;  // rollouts in the feed; the oldest are removed first

  // `feed`, `clock` and `metrics` must outlive the resolver.
  PodResolver(Options options, intake::MetadataFeed& feed, const Clock& clock, Metrics& metrics);

  void OnListBegin(ResourceKind kind) override;
  void OnObject(ResourceKind kind, const KubeObject& object) override;
  void OnDeleted(ResourceKind kind, const KubeObject& last) override;
  void OnListEnd(ResourceKind kind) override;
  // Call it when every kind that can be listed has been listed. Marks the feed as complete. From then on, rollouts are
  // reported.
  void OnComplete();

  // Returns the uid of the namespace kube-system, which identifies the cluster. "": not known yet.
  const std::string& cluster_uid() const { return cluster_uid_; }
  size_t pods() const { return pods_.size(); }

 private:
  struct Pod {
    std::vector<std::string> containers;  // ids that this pod was the first to report
    std::string owner_uid;
    size_t version = 0;  // hash of its PodVersion; 0: not passed to the tracker yet
  };
  // A ReplicaSet or a Job, and its controller.
  struct Owner {
    std::string top_kind, top_name, top_uid;
    std::string path;  // "NAMESPACE/NAME"
    int64_t revision = 0;
  };
  // Pods that were passed to the feed without their owner's owner, by uid.
  using Waiting = std::map<std::string, RolloutTracker::Sighting>;

  // Returns the stored uid of the object at `path`, for changing it. Returns nullptr if there are too many objects.
  std::string* PutNamed(ResourceKind kind, const std::string& path);
  void PutPod(const KubeObject& object);
  OwnerChain ChainOf(const KubeObject& pod);
  void PutContainers(const KubeObject& object, Pod& pod);
  void GonePod(const std::string& uid, const Pod& pod);
  void StopWaiting(const std::string& uid, const Pod& pod);
  void PutOwner(ResourceKind kind, const KubeObject& object);
  void GoneOwner(ResourceKind kind, const std::string& uid, const Owner& owner);
  void ReportWorkload(ResourceKind kind, const KubeObject& object);
  void ReportTopOwner(const std::string& pod_uid, const Owner& owner);
  void Follow(const KubeObject& object, const OwnerChain& chain, Pod& pod);
  void See(RolloutTracker::Sighting sighting, const Owner* owner);
  void ReportRollout(Entity rollout);
  void GoneNamed(ResourceKind kind, std::string_view path, std::string_view uid);
  void ReportCluster();
  void Report(Entity entity);
  MarkedTable<Owner>& OwnersOf(ResourceKind kind) { return kind == ResourceKind::kJobs ? jobs_ : replica_sets_; }
  MarkedTable<std::string>& NamedOf(ResourceKind kind) { return named_[static_cast<size_t>(kind)]; }

  const Options options_;
  intake::MetadataFeed& feed_;
  const Clock& clock_;
  Gauge &pods_gauge_, &owners_gauge_;
  Counter &left_out_, &turned_away_, &unusable_, &duplicates_, &rollouts_total_;
  MarkedTable<Pod> pods_;
  MarkedTable<Owner> replica_sets_, jobs_;
  std::array<MarkedTable<std::string>, kResourceKindCount>
      named_;                                          // uids of the other kinds, by "NAMESPACE/NAME" or "NAME"
  absl::flat_hash_map<std::string, Waiting> waiting_;  // by the owner's uid
  // Key: hash of a container's id. Value: hash of the uid of the pod that first reported the container.
  absl::flat_hash_map<size_t, size_t> container_pods_;
  RolloutTracker rollouts_;
  std::deque<std::string> reported_rollouts_;  // ids of the rollouts in the feed
  std::string cluster_uid_;
  bool complete_ = false;
};

}  // namespace tributary
