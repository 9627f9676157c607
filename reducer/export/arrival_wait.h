#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"

namespace tributary {

// Decides how long samples are held back for data that may still arrive: an executable's symbols, a container's pod.
// The wait ends wait_ns after a key was first seen without its data, so data that never arrives costs one wait. If
// kKeysMax keys are known already, samples do not wait for the data of a new key. Used by one thread.
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
  // Forgets the key, because its data arrived. Safe if the caller asks only while the data is missing.
  void Arrived(const Key& key) { first_seen_.erase(key); }

 private:
  const int64_t wait_ns_;
  absl::flat_hash_map<Key, MonotonicNs> first_seen_;
};

}  // namespace tributary
