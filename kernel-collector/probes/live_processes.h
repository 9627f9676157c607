#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "bpf/include/session.h"

namespace tributary {

// The running processes that the collector follows, in a BPF map that is pinned as "processes" and outlives the
// collector. So the next collector finds out which of them ended while no collector ran. The map does not survive a
// reboot, and neither do the processes. The pin stays when the collector stops. Not thread-safe. A default-constructed
// object pins nothing.
class LiveProcesses {
 public:
  struct Key {
    uint32_t pid = 0;
    uint64_t start_time_ns = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.pid, k.start_time_ns);
    }
  };
  using Keys = absl::flat_hash_set<Key>;
  using Table = absl::flat_hash_map<Key, trib_live_process>;
  static constexpr size_t kProcessesMax = TRIB_LIVE_PROCESSES_MAX;

  LiveProcesses() = default;
  // Reads the processes of the earlier collector from the bpffs folder, and replaces its pin. If `ignore_earlier` is
  // true, another collector still runs, so its processes are not read.
  static absl::StatusOr<LiveProcesses> Pin(const std::string& folder, bool ignore_earlier);

  // Pins nothing, and has these processes of an earlier collector. For tests.
  explicit LiveProcesses(Table earlier) : earlier_(std::move(earlier)) {}

  // Returns the processes of the earlier collector, and frees their memory. They stay pinned until the first Set, so a
  // collector that is killed before then does not lose them.
  Table TakeEarlier() { return std::exchange(earlier_, {}); }
  // Makes the map contain the processes in `live`, but at most kProcessesMax. Costs one system call, about 1 µs, for
  // each process that is new, gone or changed since the last call. `describe` is called for new and changed processes.
  void Set(const Keys& live, const std::function<trib_live_process(const Key&)>& describe);
  // The description of this process has changed. The next Set calls `describe` for it again.
  void Redescribe(const Key& key) {
    if (written_.contains(key)) changed_.insert(key);
  }

 private:
  Table earlier_;
  Fd map_;
  Keys written_;  // the processes in the map
  Keys changed_;  // those of them whose description has changed
};

}  // namespace tributary
