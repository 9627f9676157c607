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

// The version of the program that a pod runs.
struct PodVersion {
  std::string hash;    // label pod-template-hash, else controller-revision-hash, else a hash of the fields below
  std::string images;  // of its containers, sorted, separated by commas
  std::string service_version;

  friend bool operator==(const PodVersion&, const PodVersion&) = default;
};
PodVersion VersionOf(const KubeObject& pod);

// Detects rollouts from the versions of pods: a workload begins to run another version. The first version that is seen
// of a workload is not a rollout. A return to an earlier version is a rollout.
//
// The tracker decides as follows which of two versions is newer. For a Deployment, it compares the numbers (revisions)
// that the Deployment's controller gives to ReplicaSets. An old ReplicaSet that is used again gets a new number. For
// other workloads, the version of the pod that was created last is newer. Not thread-safe.
class RolloutTracker {
 public:
  static constexpr size_t kWorkloadsMax = 50'000;
  static constexpr size_t kSeenMax = 16;       // remembered hashes per workload
  static constexpr size_t kHeldMax = 200'000;  // waiting sightings

  // The fact that a pod of a workload runs a version.
  struct Sighting {
    std::string kind, name_space, name, uid;  // of the workload; kind: "Deployment"
    PodVersion version;
    UnixNs since;          // the pod has run the version since then
    int64_t revision = 0;  // of its ReplicaSet; 0: unknown
  };

  // `turned_away` counts sightings that were ignored because a limit was reached.
  explicit RolloutTracker(Counter& turned_away) : turned_away_(turned_away) {}

  // Until the first Settle, and again after each Hold, See only stores sightings. Settle then processes them in order
  // of time. This is needed for lists of pods, which are in the order of their names.
  void Hold() { holding_ = true; }
  std::vector<Entity> Settle();

  // Processes a sighting. Returns a rollout's entity if the sighting shows that a rollout has begun at
  // `sighting.since`.
  std::optional<Entity> See(Sighting sighting);
  // Call it when a workload was deleted. If a workload with the same name is seen later, its first version is not a
  // rollout.
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
