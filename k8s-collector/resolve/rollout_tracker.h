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

// What a pod runs: two pods of one version are the same program.
struct PodVersion {
  std::string hash;    // of its template: pod-template-hash, controller-revision-hash; else of the two below
  std::string images;  // of its containers, sorted, with commas between them
  std::string service_version;

  friend bool operator==(const PodVersion&, const PodVersion&) = default;
};
PodVersion VersionOf(const KubeObject& pod);

// Notices when a workload begins to run another version, by its pods: a rollout. The first version that is seen of a
// workload is none; going back to an earlier one is.
//
// Which of two versions is the newer one: the ReplicaSets of a Deployment are numbered by its controller, also when an
// old one is taken up again; elsewhere it is the version of the pod that was made last. One thread.
class RolloutTracker {
 public:
  static constexpr size_t kWorkloadsMax = 50'000;
  static constexpr size_t kSeenMax = 16;       // hashes of a workload that are remembered
  static constexpr size_t kHeldMax = 200'000;  // sightings that wait

  struct Sighting {
    std::string kind, name_space, name, uid;  // of the workload: "Deployment"
    PodVersion version;
    UnixNs since;          // the pod runs it since then
    int64_t revision = 0;  // of its ReplicaSet; 0: not known
  };

  // `turned_away`: sightings, and workloads, that are too many.
  explicit RolloutTracker(Counter& turned_away) : turned_away_(turned_away) {}

  // Until the first Settle, and after each Hold, sightings wait for Settle: lists come in the order of names.
  void Hold() { holding_ = true; }
  std::vector<Entity> Settle();

  // An entity when a rollout begins; `from` is `since`.
  std::optional<Entity> See(Sighting sighting);
  // The workload is no more: what is seen next under its name is a first version.
  void Forget(std::string_view kind, std::string_view name_space, std::string_view name);

  size_t workloads() const { return workloads_.size(); }

 private:
  struct Workload {
    std::string uid;
    PodVersion current;
    std::optional<PodVersion> previous;
    int64_t revision = 0;
    UnixNs newest;                 // since when the newest pod of `current` runs it
    std::deque<std::string> seen;  // hashes, the oldest first
  };
  std::optional<Entity> Judge(Sighting sighting);
  static bool IsNewer(const Workload& workload, const Sighting& sighting);

  Counter& turned_away_;
  bool holding_ = true;
  std::vector<Sighting> held_;
  absl::flat_hash_map<std::string, Workload> workloads_;
};

}  // namespace tributary
