#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace tributary::intake {

// A cache of frames that many sessions send. A frame is made when it is first needed, and stays in the cache until the
// memory limit is exceeded. The least recently used frame is evicted first. Not thread-safe.
class FrameCache {
 public:
  using Key = std::tuple<uint64_t, uint32_t, bool>;  // sequence, generation, with process events
  using Bytes = std::shared_ptr<const std::string>;

  explicit FrameCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  // Returns the frame stored under `key`. If there is none, calls `make`, and stores and returns the frame that it
  // made.
  template <typename Make>
  absl::StatusOr<Bytes> Get(const Key& key, Make&& make) {
    if (auto it = by_key_.find(key); it != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return entries_.front().bytes;
    }
    absl::StatusOr<std::string> made = make();
    if (!made.ok()) return made.status();
    entries_.push_front({key, std::make_shared<const std::string>(*std::move(made))});
    by_key_[key] = entries_.begin();
    bytes_ += entries_.front().bytes->size();
    ++made_;
    while (bytes_ > bytes_max_ && entries_.size() > 1) {
      bytes_ -= entries_.back().bytes->size();
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return entries_.front().bytes;
  }

  uint64_t made() const { return made_; }

 private:
  struct Entry {
    Key key;
    Bytes bytes;
  };
  const size_t bytes_max_;
  size_t bytes_ = 0;
  uint64_t made_ = 0;
  std::list<Entry> entries_;  // most recently used first
  absl::flat_hash_map<Key, std::list<Entry>::iterator> by_key_;
};

}  // namespace tributary::intake
