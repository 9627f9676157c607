#include "kernel-collector/budget/rate_ladder.h"

#include <cmath>

#include "base/status.h"

namespace tributary {

RateLadder::RateLadder(int64_t shortest_period_ns) {
  TRIBUTARY_CHECK(shortest_period_ns > 0);
  auto period_ns = static_cast<double>(shortest_period_ns);
  do {
    periods_ns_.push_back(std::llround(period_ns));
    period_ns *= kStep;
  } while (period_ns <= static_cast<double>(kPeriodNsMax));
}

}  // namespace tributary
