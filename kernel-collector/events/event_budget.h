#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace tributary {

// A budget of records per second, averaged over 10 s. It is a token bucket: it starts full, contains the records of
// 10 s at most, and each sent record costs one token. So in any window of 10 s at most 20 s' worth is sent, and in the
// long run never more than the rate. Integers only, so no record is won or lost by rounding. Not thread-safe.
class EventBudget {
 public:
  static constexpr uint32_t kEventsPerSecondMax = 10'000;
  static constexpr int64_t kWindowNs = 10 * kNsPerSecond;

  EventBudget(uint32_t events_per_second, MonotonicNs now)
      : rate_(std::min(events_per_second, kEventsPerSecondMax)), level_(int64_t{rate_} * kWindowNs), refilled_(now) {}

  void Refill(MonotonicNs now) {
    if (now <= refilled_) return;
    const int64_t elapsed_ns = std::min(now.value - refilled_.value, kWindowNs);
    level_ = std::min(int64_t{rate_} * kWindowNs, level_ + int64_t{rate_} * elapsed_ns);
    refilled_ = now;
  }
  // The caller must not spend more than tokens().
  void Spend(uint64_t records) { level_ -= static_cast<int64_t>(records) * kNsPerSecond; }

  uint64_t tokens() const { return static_cast<uint64_t>(level_ / kNsPerSecond); }
  uint64_t capacity() const { return uint64_t{rate_} * (kWindowNs / kNsPerSecond); }

 private:
  const uint32_t rate_;  // records per second
  int64_t level_;        // in 1e-9 tokens: at most 1e14
  MonotonicNs refilled_;
};

}  // namespace tributary
