#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "profile/sample_types.h"

namespace tributary {

// Numbers of samples: of all types together, and of each type but CPU (`Key()`) by itself. Most sums have CPU samples
// alone, and then cost one addition. A plain number stands for that many CPU samples.
//
// `Key` names a type: SampleType where one source is meant, SampleTypeInfo where several are added up.
template <typename Key>
class CountsBy {
 public:
  using Part = std::pair<Key, uint64_t>;

  CountsBy() = default;
  CountsBy(uint64_t cpu_samples) : total_(cpu_samples) {}  // NOLINT: what a number stands for

  uint64_t total() const { return total_; }
  bool empty() const { return total_ == 0; }
  // Types other than CPU, in their order, none of them 0.
  std::span<const Part> parts() const { return parts_; }
  uint64_t cpu() const {
    uint64_t rest = total_;
    for (const Part& part : parts_) rest -= part.second;
    return rest;
  }
  uint64_t Of(const Key& type) const {
    if (type == CpuKey()) return cpu();
    const auto at = Find(type);
    return at != parts_.end() && at->first == type ? at->second : 0;
  }

  void Add(const Key& type, uint64_t samples) {
    total_ += samples;
    if (samples == 0 || type == CpuKey()) return;
    const auto at = Find(type);
    if (at != parts_.end() && at->first == type) {
      at->second += samples;
    } else {
      parts_.insert(at, {type, samples});
    }
  }

  // Of the CPU samples that are counted here, so many are of `type` instead: as formats tell a total and its parts.
  // False, and nothing is changed: there are not that many, or the type has a part already.
  bool Split(const Key& type, uint64_t samples) {
    if (type == CpuKey() || samples > cpu() || Of(type) != 0) return false;
    total_ -= samples;
    Add(type, samples);
    return true;
  }

  CountsBy& operator+=(const CountsBy& other) {
    total_ += other.cpu();
    for (const auto& [type, samples] : other.parts_) Add(type, samples);
    return *this;
  }
  // By type: never below 0.
  CountsBy& operator-=(const CountsBy& other) {
    const uint64_t rest = cpu() - std::min(cpu(), other.cpu());
    for (const auto& [type, samples] : other.parts_) {
      const auto at = Find(type);
      if (at != parts_.end() && at->first == type) at->second -= std::min(at->second, samples);
    }
    std::erase_if(parts_, [](const Part& part) { return part.second == 0; });
    total_ = rest;
    for (const Part& part : parts_) total_ += part.second;
    return *this;
  }
  friend CountsBy operator+(CountsBy a, const CountsBy& b) { return a += b; }
  friend CountsBy operator-(CountsBy a, const CountsBy& b) { return a -= b; }
  friend CountsBy operator*(CountsBy a, uint64_t times) {
    a.total_ *= times;
    for (Part& part : a.parts_) part.second *= times;
    if (times == 0) a.parts_.clear();
    return a;
  }
  // The larger of the two, type by type.
  friend CountsBy Max(const CountsBy& a, const CountsBy& b) { return a + (b - a); }
  friend bool operator==(const CountsBy&, const CountsBy&) = default;

 private:
  static Key CpuKey() {
    if constexpr (std::is_same_v<Key, SampleType>) {
      return SampleType::kCpu;
    } else {
      return InfoOf(*FindSampleType(SampleType::kCpu));
    }
  }
  auto Find(const Key& type) {
    return std::lower_bound(parts_.begin(), parts_.end(), type,
                            [](const Part& p, const Key& k) { return p.first < k; });
  }
  auto Find(const Key& type) const {
    return std::lower_bound(parts_.begin(), parts_.end(), type,
                            [](const Part& p, const Key& k) { return p.first < k; });
  }

  uint64_t total_ = 0;
  std::vector<Part> parts_;
};

}  // namespace tributary
