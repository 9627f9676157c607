#pragma once

#include <cstdint>
#include <random>

namespace tributary {

// Calculates how long to wait before an operation that has failed is tried again: twice as long after each failure, up
// to a maximum. NextJittered returns a random time between half of this wait and all of it, so that clients do not all
// reconnect at once after a server restart. The caller passes the random number generator, so a test with a fixed seed
// always gets the same waits. Waits have the unit of the bounds. Not thread-safe.
class Backoff {
 public:
  struct Bounds {
    int64_t min;  // the first wait, unless max is smaller; must be above 0
    int64_t max;
  };
  explicit Backoff(Bounds bounds) : bounds_(bounds) {}

  // Returns the next wait. NextJittered returns Jittered(Next(), random).
  int64_t Next();
  int64_t NextJittered(std::mt19937_64& random);

  // Call it after a success: the next wait is `min` again.
  void Reset();
  // Makes every wait the maximum until Reset. Call it after a failure that will last for some time.
  void SkipToMax() { at_max_ = true; }
  // Changes the maximum. Later waits are the same as if the maximum had always been `max`.
  void SetMax(int64_t max) { bounds_.max = max; }

  // Returns the number of calls of Next and NextJittered since the last Reset.
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
