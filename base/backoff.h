#pragma once

#include <cstdint>
#include <random>

namespace tributary {

// How long to wait before each new attempt at something that fails: twice as long every time, up to a maximum. Jitter
// draws a wait from the upper half of that, so that clients whose server restarts do not come back as one. The caller
// lends the source of chance and counts on one draw a wait: a test's seed fixes every wait. A wait's unit is that of
// the bounds. On its owner's thread.
class Backoff {
 public:
  struct Bounds {
    int64_t min;  // the first wait, unless max is less; more than 0
    int64_t max;
  };
  explicit Backoff(Bounds bounds) : bounds_(bounds) {}

  // The next wait; NextJittered: Jittered(Next(), random).
  int64_t Next();
  int64_t NextJittered(std::mt19937_64& random);

  // After a success: the next wait is the first again.
  void Reset();
  // After a failure that a short wait cannot end: every wait is the maximum, until Reset.
  void SkipToMax() { at_max_ = true; }
  // Waits go on doubling from where they were, also behind a maximum that was lower.
  void SetMax(int64_t max) { bounds_.max = max; }

  // Calls of Next and NextJittered since Reset.
  uint32_t failures() const { return failures_; }

 private:
  Bounds bounds_;
  uint32_t failures_ = 0;
  bool at_max_ = false;
};

// Between half of `wait`, which is not negative, and all of it.
int64_t Jittered(int64_t wait, std::mt19937_64& random);

// `seed`, or a random one if it is 0.
uint64_t SeedOrRandom(uint64_t seed);

}  // namespace tributary
