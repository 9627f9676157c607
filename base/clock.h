#pragma once

#include "base/types.h"

namespace tributary {

// Where code takes the time from, so that tests never sleep. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicNs Monotonic() const = 0;
  virtual UnixNs Unix() const = 0;

  // Both clocks at one instant; the real clock bounds the gap between the two readings by reading thrice.
  virtual ClockPair Pair() const { return ClockPair{Monotonic(), Unix()}; }

  // The machine's clocks. Lives for ever.
  static const Clock& Real();
};

// A clock that moves when told. Both clocks advance together. Not thread-safe.
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
