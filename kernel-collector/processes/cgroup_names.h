#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/types.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

struct CgroupName {
  std::string path;          // as the host sees it; "" if no path was found
  std::string container_id;  // "": in no container
};

// Resolves the cgroup ids that BPF reads to names. The first source is the process's own /proc/PID/cgroup, if the
// process is still in the cgroups with these ids. Otherwise the second source is a walk of the hierarchies. Walks
// remember every cgroup that they pass, because a container outlives most of its processes. In the unified hierarchy,
// kernel events report each cgroup when it is created. Walks take at most 2% of a CPU on average, so there is a pause
// after each walk. A caller that asks during the pause gets its answer later. Loop thread; reads run on `executor`.
class CgroupNames {
 public:
  static constexpr size_t kNamesMax = 16'384;        // above this limit the cache is cleared
  static constexpr size_t kDirectoriesMax = 20'000;  // per hierarchy: the limit of walked and of remembered directories
  static constexpr int64_t kWalkPeriodMinNs = 200 * kNsPerMs;
  static constexpr int64_t kWalkShare = 50;  // a walk may take one part in 50 of all time

  struct Options {
    std::string proc_root = "/proc";
    std::string cgroup_root = "/sys/fs/cgroup";
    std::string cgroup_v1;     // samples carry ids of this controller's v1 hierarchy: "memory"; "": of none
    bool takes_events = true;  // OnMade reports the unified hierarchy's cgroups
  };

  // The cgroup ids in the unified hierarchy and in the v1 hierarchy; 0: none.
  struct Key {
    uint64_t v2_id = 0, v1_id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.v2_id, k.v1_id);
    }
  };

  CgroupNames(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // Call it when the kernel has made a cgroup. The cgroup is then known before any process is in it, and still known
  // after the cgroup and all of its processes are gone.
  void OnMade(uint64_t id, std::string_view path);
  // Returns the name, or null while the lookup is running: the caller must ask again later.
  const CgroupName* Find(Key key, Pid pid);
  size_t size() const { return names_.size(); }

 private:
  using Paths = absl::flat_hash_map<uint64_t, std::string>;
  struct Reading;
  struct Walk;

  static void Read(Reading& reading);
  void FinishReading(const Reading& reading);
  void StartWalk();
  void FinishWalk(Walk& walk);
  bool MayWalk() const;
  // Builds the name from the cgroups that walks have passed and that events reported. Returns false if an id is not
  // among them.
  bool NameByWalks(Key key, CgroupName* name) const;
  void Remember(Key key, CgroupName name);

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  absl::flat_hash_map<Key, CgroupName> names_;
  absl::flat_hash_set<Key> reading_;
  absl::flat_hash_set<Key> unread_;  // /proc had no answer: a walk must find the key
  Paths unified_, legacy_;           // the cgroups that walks passed and that events reported
  bool walking_ = false;
  MonotonicNs next_walk_;
  Counter& unknown_;
  Counter& walks_;
  CallbackScope scope_;
};

}  // namespace tributary
