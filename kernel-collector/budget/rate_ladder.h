#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tributary {

// The sampling periods that a collector may choose from. The first one is the configured period. Each further period is
// the golden ratio times the period before it, up to one second. So no two periods of a ladder have a simple ratio such
// as 2:1. If one period matches the rhythm of a program by chance, its neighbours do not.
class RateLadder {
 public:
  static constexpr double kStep = 1.618033988749895;
  static constexpr int64_t kPeriodNsMax = 1'000'000'000;

  // If `shortest_period_ns` is above kPeriodNsMax, the ladder contains only this period.
  explicit RateLadder(int64_t shortest_period_ns);

  size_t size() const { return periods_ns_.size(); }
  int64_t period_ns(size_t step) const { return periods_ns_[step]; }  // step 0 is the configured period

  // Returns the cost of sampling at step `to`, divided by the cost at step `from`, if the cost is proportional to the
  // rate.
  double CostRatio(size_t from, size_t to) const {
    return static_cast<double>(periods_ns_[from]) / static_cast<double>(periods_ns_[to]);
  }

 private:
  std::vector<int64_t> periods_ns_;
};

}  // namespace tributary
