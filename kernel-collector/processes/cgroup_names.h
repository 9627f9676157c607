#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/types.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

struct CgroupName {
  std::string path;          // as the host sees it; "" when nothing could be found
  std::string container_id;  // "" = in no container
};

// From the cgroup ids that BPF reads to names. An id is the inode number of the cgroup's directory. The process's own
// /proc/PID/cgroup answers first; for a process that is gone, a walk of the mounted hierarchy (rate-limited, bounded)
// that remembers every cgroup it passes. Cache of kNamesMax; when full it starts again. Loop thread; reads on
// `executor`.
class CgroupNames {
 public:
  static constexpr size_t kNamesMax = 16'384;
  static constexpr size_t kDirectoriesMax = 20'000;

  struct Key {
    uint64_t v2_id = 0, v1_id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.v2_id, k.v1_id);
    }
  };

  CgroupNames(std::string proc_root, std::string cgroup_root, Executor& executor, const Clock& clock, Metrics& metrics);

  // The name, or null while it is being looked up: ask again later.
  const CgroupName* Find(Key key, Pid pid);
  size_t size() const { return names_.size(); }

 private:
  struct Lookup;
  static void Read(Lookup& lookup);
  void Finish(const Lookup& lookup);

  std::string proc_root_, cgroup_root_;
  Executor& executor_;
  const Clock& clock_;
  absl::flat_hash_map<Key, CgroupName> names_;
  absl::flat_hash_map<Key, bool> pending_;
  MonotonicNs last_walk_;
  bool walked_ = false;
  Counter& unknown_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Inode number of every directory below a hierarchy's root → its path in it. At most `directories_max`.
absl::flat_hash_map<uint64_t, std::string> WalkCgroups(const std::string& root, size_t directories_max);

}  // namespace tributary
