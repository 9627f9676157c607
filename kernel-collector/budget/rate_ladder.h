#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tributary {

// The sampling periods that a collector may choose from: the configured one, then each longer by the golden ratio, up
// to one second. No two periods of a ladder have a simple ratio, to each other or to the round periods of programs (10
// ms, 100 ms). So if one rate matches a rhythm by chance, its neighbours do not.
class RateLadder {
 public:
  static constexpr double kStep = 1.618033988749895;
  static constexpr int64_t kPeriodNsMax = 1'000'000'000;

  // A period over kPeriodNsMax makes a ladder of that one step.
  explicit RateLadder(int64_t shortest_period_ns);

  size_t size() const { return periods_ns_.size(); }
  int64_t period_ns(size_t step) const { return periods_ns_[step]; }  // step 0 is the configured period

  // The cost of sampling at `to`, as a multiple of the cost at `from`, if all of it came from samples.
  double CostRatio(size_t from, size_t to) const {
    return static_cast<double>(periods_ns_[from]) / static_cast<double>(periods_ns_[to]);
  }

 private:
  std::vector<int64_t> periods_ns_;
};

}  // namespace tributary
