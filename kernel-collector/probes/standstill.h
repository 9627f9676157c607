#pragma once

#include <cstdint>

#include "base/types.h"

namespace tributary {

// Tells from two clocks read now and then whether one of them stopped in between. The scheduler's clock may lag some
// ticks on an idle CPU and drift against CLOCK_MONOTONIC by what NTP slews; a clock that stopped does more.
class Standstill {
 public:
  Standstill(MonotonicNs now, int64_t watched_ns) : now_(now), watched_ns_(watched_ns) {}

  // True: the watched clock stood still for more than 100 ms since the last call.
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
