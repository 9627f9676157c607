#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace tributary {

// Limits a rate, for example of bytes, of work, or of CPU time in ns. The budget gains `per_second` tokens a second, up
// to `burst` tokens, with which it starts. The cost of a job is known only afterwards, so the budget may become
// negative. The next job must then wait until the debt is paid. Not thread-safe.
class TokenBucket {
 public:
  TokenBucket(int64_t per_second, int64_t burst, MonotonicNs now)
      : per_second_(static_cast<double>(per_second)),
        burst_(static_cast<double>(burst)),
        tokens_(burst_),
        filled_(now) {}

  void Refill(MonotonicNs now) {
    // Floating point: after a long time without a call, the product of integers could overflow.
    const double gained = static_cast<double>(now.value - filled_.value) / kNsPerSecond * per_second_;
    tokens_ = std::min(burst_, tokens_ + gained);
    filled_ = now;
  }
  void Spend(int64_t tokens) { tokens_ -= static_cast<double>(tokens); }
  bool has_tokens() const { return tokens_ > 0; }
  bool is_full() const { return tokens_ >= burst_; }
  // Returns for how many milliseconds the next job must wait until the debt is paid; 0: there is no debt.
  int64_t wait_ms() const { return tokens_ >= 0 ? 0 : 1 + static_cast<int64_t>(-tokens_ * 1e3 / per_second_); }

 private:
  double per_second_, burst_;
  double tokens_;  // below 0: a debt
  MonotonicNs filled_;
};

}  // namespace tributary
