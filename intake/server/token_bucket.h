#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace tributary::intake {

// Limits a rate. The bucket gains `per_second` tokens a second, up to the tokens of two seconds, with which it starts.
// Take may take more tokens than there are, because the cost of work is known only after the work. The next work must
// then wait until the debt is paid.
class TokenBucket {
 public:
  TokenBucket(int64_t per_second, MonotonicNs now)
      : per_second_(per_second), tokens_(2 * per_second), filled_at_(now) {}

  // Returns for how many milliseconds the next work must wait; 0: it may begin.
  int64_t Take(int64_t tokens, MonotonicNs now) {
    Fill(now);
    tokens_ -= tokens;
    if (tokens_ >= 0) return 0;
    return 1 + static_cast<int64_t>(static_cast<double>(-tokens_) * 1e3 / static_cast<double>(per_second_));
  }
  bool IsFull(MonotonicNs now) {
    Fill(now);
    return tokens_ == 2 * per_second_;
  }

 private:
  void Fill(MonotonicNs now) {
    const int64_t elapsed_ns = std::clamp<int64_t>(now.value - filled_at_.value, 0, kNsPerMinute);
    const auto gained = static_cast<int64_t>(static_cast<double>(per_second_) * static_cast<double>(elapsed_ns) / 1e9);
    if (gained == 0) return;
    tokens_ = std::min(tokens_ + gained, 2 * per_second_);
    filled_at_ = now;
  }

  int64_t per_second_;
  int64_t tokens_;  // below 0: a debt
  MonotonicNs filled_at_;
};

}  // namespace tributary::intake
