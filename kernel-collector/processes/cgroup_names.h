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

// Finds the path and the container of a cgroup by the cgroup ids in a sample. The first source is /proc/PID/cgroup, if
// the process is still in the cgroups with these ids. The second source is a walk over the directories of the cgroup
// hierarchies. A walk stores every cgroup that it finds. So later samples of a container need no walk, even if their
// processes have ended. New cgroups of the unified hierarchy are also reported by kernel events. Walks take at most 2%
// of a CPU on average, so there is a pause after each walk. During the pause, Find returns null for cgroups that need a
// walk. Loop thread only; files and directories are read on `executor`.
class CgroupNames {
 public:
  static constexpr size_t kNamesMax = 16'384;        // above this limit the cache is cleared
  static constexpr size_t kDirectoriesMax = 20'000;  // per hierarchy: the limit of walked and of remembered directories
  static constexpr int64_t kWalkPeriodMinNs = 200 * kNsPerMs;
  static constexpr int64_t kWalkShare = 50;  // a walk may take one part in 50 of all time

  struct Options {
    std::string proc_root = "/proc";
    std::string cgroup_root = "/sys/fs/cgroup";
    std::string cgroup_v1;     // the controller of the v1 hierarchy in samples, such as "memory"; "": none
    bool takes_events = true;  // false: OnMade does nothing, because the events are about a v1 hierarchy
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

  // Call it when the kernel has created a cgroup. So the cgroup is known before its first process runs, and still known
  // after the cgroup was removed.
  void OnMade(uint64_t id, std::string_view path);
  // Returns null if the name is not known yet: the caller must then call Find again later.
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
  // Builds the name from the cgroups that walks found and events reported. Returns false if a cgroup of `key` is not
  // among them.
  bool NameByWalks(Key key, CgroupName* name) const;
  void Remember(Key key, CgroupName name);

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  absl::flat_hash_map<Key, CgroupName> names_;
  absl::flat_hash_set<Key> reading_;
  absl::flat_hash_set<Key> unread_;  // /proc had no answer: a walk must find the key
  Paths unified_, legacy_;           // the cgroups that walks found and events reported
  bool walking_ = false;
  MonotonicNs next_walk_;
  Counter& unknown_;
  Counter& walks_;
  CallbackScope scope_;
};

}  // namespace tributary
