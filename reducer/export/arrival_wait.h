#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"

namespace tributary {

// How long to hold samples back for what may still be on its way: an executable's symbols, a container's pod. Until
// wait_ns after it was first met without; what never comes costs one wait. Full: no more waits. One thread.
template <typename Key>
class ArrivalWait {
 public:
  static constexpr size_t kKeysMax = 65'536;

  explicit ArrivalWait(int64_t wait_ns) : wait_ns_(wait_ns) {}

  bool ShouldWait(const Key& key, MonotonicNs now) {
    auto it = first_met_.find(key);
    if (it == first_met_.end()) {
      if (first_met_.size() >= kKeysMax) return false;
      it = first_met_.emplace(key, now).first;
    }
    return now.value - it->second.value < wait_ns_;
  }
  // It came. What is awaited for as long as it is not there may be forgotten then.
  void Arrived(const Key& key) { first_met_.erase(key); }

 private:
  const int64_t wait_ns_;
  absl::flat_hash_map<Key, MonotonicNs> first_met_;
};

}  // namespace tributary
