#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "k8s-collector/watch/kube_object.h"
#include "profile/metadata.h"

namespace tributary {

// The program that a pod runs. Two pods of one version run the same program.
struct PodVersion {
  std::string hash;    // of its template: pod-template-hash, controller-revision-hash; else of the fields below
  std::string images;  // of its containers, sorted, separated by commas
  std::string service_version;

  friend bool operator==(const PodVersion&, const PodVersion&) = default;
};
PodVersion VersionOf(const KubeObject& pod);

// Detects rollouts: a workload begins to run another version, as its pods show. The first version seen of a workload is
// not a rollout. A return to an earlier version is a rollout.
//
// The newer of two versions is found as follows. A Deployment's controller numbers its ReplicaSets, and gives an old
// one a new number when it is used again. For other workloads, the version of the pod that was created last is newer.
// Thread: one.
class RolloutTracker {
 public:
  static constexpr size_t kWorkloadsMax = 50'000;
  static constexpr size_t kSeenMax = 16;       // remembered hashes per workload
  static constexpr size_t kHeldMax = 200'000;  // waiting sightings

  struct Sighting {
    std::string kind, name_space, name, uid;  // of the workload; kind: "Deployment"
    PodVersion version;
    UnixNs since;          // the pod has run the version since then
    int64_t revision = 0;  // of its ReplicaSet; 0: unknown
  };

  // `turned_away` counts sightings and workloads over the limits.
  explicit RolloutTracker(Counter& turned_away) : turned_away_(turned_away) {}

  // Until the first Settle(), and after each Hold(), sightings wait for Settle(), because lists are in the order of
  // names.
  void Hold() { holding_ = true; }
  std::vector<Entity> Settle();

  // Returns an entity if a rollout begins. Its `from` is `since`.
  std::optional<Entity> See(Sighting sighting);
  // Forgets a deleted workload. The next version seen under its name counts as a first version.
  void Forget(std::string_view kind, std::string_view name_space, std::string_view name);

  size_t workloads() const { return workloads_.size(); }

 private:
  struct Workload {
    std::string uid;
    PodVersion current;
    std::optional<PodVersion> previous;
    int64_t revision = 0;
    UnixNs newest;                 // the newest pod of `current` has run it since then
    std::deque<std::string> seen;  // hashes, oldest first
  };
  std::optional<Entity> Judge(Sighting sighting);
  static bool IsNewer(const Workload& workload, const Sighting& sighting);

  Counter& turned_away_;
  bool holding_ = true;
  std::vector<Sighting> held_;
  absl::flat_hash_map<std::string, Workload> workloads_;
};

}  // namespace tributary
