#pragma once

#include <cstdint>

#include "base/types.h"

namespace tributary {

// Compares two clocks at intervals and finds out whether the watched clock stopped in between. The scheduler's clock
// may lag some ticks on an idle CPU, and drift against CLOCK_MONOTONIC by NTP's slew. A clock that stopped lags more.
class Standstill {
 public:
  Standstill(MonotonicNs now, int64_t watched_ns) : now_(now), watched_ns_(watched_ns) {}

  // Returns true if the watched clock has lost more than 100 ms plus 1/64 of the time since the last call.
  bool Observe(MonotonicNs now, int64_t watched_ns) {
    int64_t elapsed_ns = now.value - now_.value;
    int64_t lag_ns = elapsed_ns - (watched_ns - watched_ns_);
    now_ = now;
    watched_ns_ = watched_ns;
    return lag_ns > kToleranceNs + elapsed_ns / 64;
  }

 private:
  static constexpr int64_t kToleranceNs = 100 * kNsPerMs;

  MonotonicNs now_;
  int64_t watched_ns_;
};

}  // namespace tributary
