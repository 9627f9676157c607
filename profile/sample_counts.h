#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "profile/sample_types.h"

namespace tributary {

// Sums do not exceed this limit. So they cannot overflow, whatever numbers a sender sends, and a total is never below
// the sum of its parts.
constexpr uint64_t kSampleCountMax = uint64_t{1} << 62;

// Numbers of samples by type, and a number of process events. Most counts have only CPU samples. To add these costs
// only one addition. A plain number converts to a count of CPU samples. The number of process events is never part of
// the number of samples.
//
// `Key` identifies a type: SampleType for a single source, SampleTypeInfo for sums over several sources. The default
// key stands for process events.
template <typename Key>
class CountsBy {
 public:
  using Part = std::pair<Key, uint64_t>;

  CountsBy() = default;
  CountsBy(uint64_t cpu_samples) : total_(std::min(cpu_samples, kSampleCountMax)) {}  // NOLINT: implicit on purpose

  uint64_t total() const { return total_; }  // samples of all types
  uint64_t events() const { return parts_.empty() || parts_.front().first != Key{} ? 0 : parts_.front().second; }
  bool empty() const { return total_ == 0 && parts_.empty(); }
  // The number of process events, then the counts of all sample types other than CPU, in order of the key. No count is
  // 0.
  std::span<const Part> parts() const { return parts_; }
  uint64_t cpu() const { return total_ - SamplesInParts(); }
  uint64_t Of(const Key& type) const {
    if (type == CpuKey()) return cpu();
    const auto at = Find(type);
    return at != parts_.end() && at->first == type ? at->second : 0;
  }

  void Add(const Key& type, uint64_t records) {
    const bool is_sample = type != Key{};
    records = std::min(records, kSampleCountMax - (is_sample ? total_ : events()));
    if (is_sample) total_ += records;
    if (records == 0 || type == CpuKey()) return;
    const auto at = Find(type);
    if (at != parts_.end() && at->first == type) {
      at->second += records;
    } else {
      parts_.insert(at, {type, records});
    }
  }
  void AddEvents(uint64_t events) { Add(Key{}, events); }

  // Changes the type of `samples` CPU samples to `type`. Decoders use it, because a message contains the total first
  // and then the counts of the other types. Process events are not in the total, so this function adds them. Returns
  // false and changes nothing if there are fewer than `samples` CPU samples, or if `type` already has a count.
  bool Split(const Key& type, uint64_t samples) {
    if (type == CpuKey() || Of(type) != 0) return false;
    if (type != Key{}) {
      if (samples > cpu()) return false;
      total_ -= samples;
    }
    Add(type, samples);
    return true;
  }

  CountsBy& operator+=(const CountsBy& other) {
    total_ += std::min(other.cpu(), kSampleCountMax - total_);
    for (const auto& [type, samples] : other.parts_) Add(type, samples);
    return *this;
  }
  // Subtracts the count of each type. No count becomes less than 0.
  CountsBy& operator-=(const CountsBy& other) {
    const uint64_t rest = cpu() - std::min(cpu(), other.cpu());
    for (const auto& [type, records] : other.parts_) {
      const auto at = Find(type);
      if (at != parts_.end() && at->first == type) at->second -= std::min(at->second, records);
    }
    std::erase_if(parts_, [](const Part& part) { return part.second == 0; });
    total_ = rest + SamplesInParts();
    return *this;
  }
  friend CountsBy operator+(CountsBy a, const CountsBy& b) { return a += b; }
  friend CountsBy operator-(CountsBy a, const CountsBy& b) { return a -= b; }
  friend CountsBy operator*(const CountsBy& a, uint64_t times) {
    const auto multiply = [times](uint64_t samples) {
      return times != 0 && samples > kSampleCountMax / times ? kSampleCountMax : samples * times;
    };
    CountsBy product = multiply(a.cpu());
    for (const auto& [type, samples] : a.parts_) product.Add(type, multiply(samples));
    return product;
  }
  // Returns the larger count for each type.
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
  uint64_t SamplesInParts() const {
    uint64_t samples = 0;
    for (const Part& part : parts_) {
      if (part.first != Key{}) samples += part.second;
    }
    return samples;
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
