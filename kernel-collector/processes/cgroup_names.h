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
  std::string path;          // as the host sees it; "" when nothing could be found
  std::string container_id;  // "" = in no container
};

// From the cgroup ids that BPF reads to names. The process's own /proc/PID/cgroup answers first, where it is of the
// same cgroups as the ids. Of a process that is gone, or has moved since, walks of the hierarchies tell, which remember
// every cgroup they pass: a container outlives most of its processes. Of the unified hierarchy the kernel's events tell
// the same beforehand. Walks follow one another only so closely that
// they take 2% of a CPU; who asks in between is told later. Loop thread; reads on `executor`.
class CgroupNames {
 public:
  static constexpr size_t kNamesMax = 16'384;        // when there are more the cache starts again
  static constexpr size_t kDirectoriesMax = 20'000;  // of one hierarchy: walked, and remembered
  static constexpr int64_t kWalkPeriodMinNs = 200 * kNsPerMs;
  static constexpr int64_t kWalkShare = 50;  // of all time, one part

  struct Options {
    std::string proc_root = "/proc";
    std::string cgroup_root = "/sys/fs/cgroup";
    std::string cgroup_v1;     // the controller whose v1 hierarchy samples carry an id of: "memory"; "" for none
    bool takes_events = true;  // OnMade tells of the unified hierarchy's cgroups
  };

  // Of the unified hierarchy and of the v1 one; 0 = none.
  struct Key {
    uint64_t v2_id = 0, v1_id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.v2_id, k.v1_id);
    }
  };

  CgroupNames(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  // The kernel has made a cgroup: known before anybody is in it, and also when it and all that ran there are gone.
  void OnMade(uint64_t id, std::string_view path);
  // The name, or null while it is being looked up: ask again later.
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
  // From what walks have passed; false when an id is not among them.
  bool NameByWalks(Key key, CgroupName* name) const;
  void Remember(Key key, CgroupName name);

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  absl::flat_hash_map<Key, CgroupName> names_;
  absl::flat_hash_set<Key> reading_;
  absl::flat_hash_set<Key> unread_;  // /proc did not tell: a walk must
  Paths unified_, legacy_;           // what walks have passed, and events told of
  bool walking_ = false;
  MonotonicNs next_walk_;
  Counter& unknown_;
  Counter& walks_;
  CallbackScope scope_;
};

}  // namespace tributary
