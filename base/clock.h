#pragma once

#include "base/types.h"

namespace tributary {

// The source of time. Code must read a Clock instead of the system's clocks, so that tests can set the time and need
// not sleep. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicNs Monotonic() const = 0;
  virtual UnixNs Unix() const = 0;

  // Returns readings of both clocks at nearly the same instant. The real clock reads the unix clock between two
  // readings of the monotonic clock, and does so three times. It uses the attempt with the least time between the two
  // monotonic readings, and returns their middle as the monotonic time.
  virtual ClockPair Pair() const { return ClockPair{Monotonic(), Unix()}; }

  // Returns the Clock that reads the machine's clocks. It is never destroyed.
  static const Clock& Real();
};

// A clock that moves only when Advance is called. Both clocks advance together. Not thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(MonotonicNs monotonic = MonotonicNs{kNsPerSecond},
                     UnixNs unix = UnixNs{1'700'000'000 * kNsPerSecond})
      : pair_{monotonic, unix} {}
  MonotonicNs Monotonic() const override { return pair_.monotonic; }
  UnixNs Unix() const override { return pair_.unix; }
  void Advance(int64_t ns) {
    pair_.monotonic.value += ns;
    pair_.unix.value += ns;
  }

 private:
  ClockPair pair_;
};

}  // namespace tributary
