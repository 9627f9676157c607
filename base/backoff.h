#pragma once

#include <cstdint>
#include <random>

namespace tributary {

// Calculates the wait before each new attempt at an operation that fails: twice as long every time, up to a maximum.
// Jitter draws a wait from the upper half of the calculated wait, so that clients do not all come back at once after a
// server restart. The random number generator is the caller's, so the seed of a test fixes every wait. Waits have the
// unit of the bounds. Use it on its owner's thread.
class Backoff {
 public:
  struct Bounds {
    int64_t min;  // the first wait, unless max is smaller; above 0
    int64_t max;
  };
  explicit Backoff(Bounds bounds) : bounds_(bounds) {}

  // Returns the next wait. NextJittered returns Jittered(Next(), random).
  int64_t Next();
  int64_t NextJittered(std::mt19937_64& random);

  // Call it after a success: the next wait is the first one again.
  void Reset();
  // Call it after a failure that a short wait cannot end: every wait is the maximum until Reset.
  void SkipToMax() { at_max_ = true; }
  // Changes the maximum. The next wait is calculated from `min` and the number of failures, as if the maximum had
  // always been `max`.
  void SetMax(int64_t max) { bounds_.max = max; }

  // Number of calls of Next and NextJittered since Reset.
  uint32_t failures() const { return failures_; }

 private:
  Bounds bounds_;
  uint32_t failures_ = 0;
  bool at_max_ = false;
};

// Returns a random wait between half of `wait` and all of it. `wait` must not be negative.
int64_t Jittered(int64_t wait, std::mt19937_64& random);

// Returns `seed`, or a random seed if it is 0.
uint64_t SeedOrRandom(uint64_t seed);

}  // namespace tributary
