#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "base/status.h"

namespace tributary {

// Stores each distinct string once, and identifies it by a number. Number 0 is the empty string. A string needs about
// 12 bytes in addition to its own bytes, because the hash set contains only the numbers of the strings.
class StringPool {
 public:
  StringPool(size_t strings_max, size_t bytes_max)
      : strings_max_(strings_max), bytes_max_(bytes_max), ids_(0, Hash{this}, Equal{this}) {
    ids_.insert(0u);
  }
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  // Returns the number of `text`, and adds `text` if it is new. Returns 0 if the pool is full.
  uint32_t Intern(std::string_view text) {
    if (auto it = ids_.find(ToAbsl(text)); it != ids_.end()) return *it;
    if (size() == strings_max_ || text.size() > bytes_max_ - bytes_.size()) return 0;
    const auto id = static_cast<uint32_t>(size());
    bytes_ += text;
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    ids_.insert(id);
    return id;
  }
  size_t size() const { return offsets_.size() - 1; }
  std::string_view at(uint32_t id) const {
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

  // Returns the offsets of the strings (one more than there are strings) and their bytes. Do not use the pool
  // afterwards.
  std::pair<std::vector<uint32_t>, std::string> Take() {
    ids_.clear();
    return {std::move(offsets_), std::move(bytes_)};
  }

 private:
  struct Hash {
    using is_transparent = void;
    const StringPool* pool;
    size_t operator()(uint32_t id) const { return (*this)(ToAbsl(pool->at(id))); }
    size_t operator()(absl::string_view text) const { return absl::HashOf(text); }
  };
  struct Equal {
    using is_transparent = void;
    const StringPool* pool;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t a, absl::string_view text) const { return ToAbsl(pool->at(a)) == text; }
    bool operator()(absl::string_view text, uint32_t a) const { return ToAbsl(pool->at(a)) == text; }
  };

  const size_t strings_max_, bytes_max_;
  std::string bytes_;
  std::vector<uint32_t> offsets_{0, 0};
  absl::flat_hash_set<uint32_t, Hash, Equal> ids_;
};

}  // namespace tributary
