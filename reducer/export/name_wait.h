#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "profile/executable_id.h"

namespace tributary {

// How long to hold samples back for symbols that may still be on their way from a node: until kWaitNs after an
// executable was first met without any. One that never gets symbols costs one wait. Full: no more waits. One thread.
class NameWait {
 public:
  static constexpr int64_t kWaitNs = 10 * kNsPerSecond;
  static constexpr size_t kExecutablesMax = 65'536;

  bool ShouldWait(const ExecutableId& id, MonotonicNs now) {
    auto it = first_met_.find(id);
    if (it == first_met_.end()) {
      if (first_met_.size() >= kExecutablesMax) return false;
      it = first_met_.emplace(id, now).first;
    }
    return now.value - it->second.value < kWaitNs;
  }

 private:
  absl::flat_hash_map<ExecutableId, MonotonicNs> first_met_;
};

}  // namespace tributary
