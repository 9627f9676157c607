#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace tributary {

// A budget of CPU time. It grows by `ns_per_second`, up to `burst_ns`. The cost of a job is known only afterwards, so
// the budget may become negative. The next job must then wait until the budget is positive again (has_tokens). Not
// thread-safe.
class TokenBucket {
 public:
  TokenBucket(int64_t ns_per_second, int64_t burst_ns, MonotonicNs now)
      : ns_per_second_(ns_per_second), burst_ns_(burst_ns), tokens_ns_(burst_ns), refilled_(now) {}

  void Refill(MonotonicNs now) {
    // Floating point: after a long time without a call, the product of integers could overflow.
    double gained =
        static_cast<double>(now.value - refilled_.value) / kNsPerSecond * static_cast<double>(ns_per_second_);
    tokens_ns_ = std::min(static_cast<double>(burst_ns_), tokens_ns_ + gained);
    refilled_ = now;
  }
  void Spend(int64_t ns) { tokens_ns_ -= static_cast<double>(ns); }
  bool has_tokens() const { return tokens_ns_ > 0; }

 private:
  int64_t ns_per_second_, burst_ns_;
  double tokens_ns_;
  MonotonicNs refilled_;
};

}  // namespace tributary
