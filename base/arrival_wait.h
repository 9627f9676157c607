#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"

namespace tributary {

// Decides how long samples are held back for data that may still arrive, such as the symbols of an executable or the
// pod of a container. A key identifies an executable or a container. The wait for a key starts at the first ShouldWait
// and ends `wait_ns` later. Samples do not wait for the same key again, so data that never arrives delays samples only
// once. If kKeysMax keys are stored, samples do not wait for new keys. Used by one thread.
template <typename Key>
class ArrivalWait {
 public:
  static constexpr size_t kKeysMax = 65'536;

  explicit ArrivalWait(int64_t wait_ns) : wait_ns_(wait_ns) {}

  bool ShouldWait(const Key& key, MonotonicNs now) {
    auto it = first_seen_.find(key);
    if (it == first_seen_.end()) {
      if (first_seen_.size() >= kKeysMax) return false;
      it = first_seen_.emplace(key, now).first;
    }
    return now.value - it->second.value < wait_ns_;
  }
  // Removes the key, because its data arrived. From now on, do not call ShouldWait for this key: it would start a new
  // wait.
  void Arrived(const Key& key) { first_seen_.erase(key); }

 private:
  const int64_t wait_ns_;
  absl::flat_hash_map<Key, MonotonicNs> first_seen_;
};

}  // namespace tributary
