#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/types.h"
#include "profile/executable_id.h"

namespace tributary {

// Decides how long a node waits before it requests a symbol table again. A table that could not be made may be possible
// later: a process that maps the file may start, or memory may be free again. A table that was dropped would be made
// and dropped for ever if the tables in use are larger than their limit together. So the pauses of an id grow. Of more
// than kIdsMax ids, those without news for the longest time are forgotten. Used by one thread.
class RequestPauses {
 public:
  static constexpr size_t kIdsMax = 65'536;
  // After a failure that may be over soon; doubled with each failure of the id.
  static constexpr int64_t kFailureMinNs = 60 * kNsPerSecond;
  static constexpr int64_t kFailureMaxNs = 3600 * kNsPerSecond;
  // After the first drop of a table, the second, and all later ones.
  static constexpr std::array<int64_t, 3> kDroppedNs = {10 * kNsPerSecond, 60 * kNsPerSecond, 600 * kNsPerSecond};
  // The drops of an id start anew if its table was in memory for so long.
  static constexpr int64_t kCalmNs = 3600 * kNsPerSecond;

  bool IsPaused(const ExecutableId& id, MonotonicNs now) const;
  void OnFailure(const ExecutableId& id, absl::StatusCode why, MonotonicNs now);
  void OnAdded(const ExecutableId& id, MonotonicNs now);
  void OnDropped(const ExecutableId& id, MonotonicNs now);

  size_t size() const { return ids_.size(); }

 private:
  struct Id {
    MonotonicNs until{0}, added{0};
    uint32_t failures = 0;  // since the last table
    uint32_t drops = 0;
    std::list<ExecutableId>::iterator place;  // in order_
  };
  Id& Touch(const ExecutableId& id);

  absl::flat_hash_map<ExecutableId, Id> ids_;
  std::list<ExecutableId> order_;  // the one with the oldest news first
};

}  // namespace tributary
