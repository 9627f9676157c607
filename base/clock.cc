#include "base/clock.h"

#include <ctime>

namespace tributary {
namespace {

int64_t Read(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * kNsPerSecond + ts.tv_nsec;
}

class RealClock final : public Clock {
 public:
  MonotonicNs Monotonic() const override { return MonotonicNs{Read(CLOCK_MONOTONIC)}; }
  UnixNs Unix() const override { return UnixNs{Read(CLOCK_REALTIME)}; }
  ClockPair Pair() const override {
    // Uses the tightest of three attempts. A preemption between two readings would shift every time by its length.
    ClockPair best;
    int64_t best_gap = INT64_MAX;
    for (int i = 0; i < 3; ++i) {
      int64_t before = Read(CLOCK_MONOTONIC);
      int64_t unix_ns = Read(CLOCK_REALTIME);
      int64_t after = Read(CLOCK_MONOTONIC);
      if (after - before < best_gap) {
        best_gap = after - before;
        best = ClockPair{MonotonicNs{before + (after - before) / 2}, UnixNs{unix_ns}};
      }
    }
    return best;
  }
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock clock;
  return clock;
}

}  // namespace tributary
