#pragma once

#include <cstdint>

#include "base/types.h"

namespace tributary {

// Compares the watched clock with CLOCK_MONOTONIC at intervals, and finds out whether the watched clock stopped in
// between. The watched clock is the scheduler's clock. It may lag some ticks on an idle CPU, and NTP may make
// CLOCK_MONOTONIC faster or slower. A clock that has stopped lags more.
class Standstill {
 public:
  Standstill(MonotonicNs now, int64_t watched_ns) : now_(now), watched_ns_(watched_ns) {}

  // Returns true if, since the last call, the watched clock has fallen behind CLOCK_MONOTONIC by more than 100 ms plus
  // 1/64 of the elapsed time.
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
