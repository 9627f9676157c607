#include "base/backoff.h"

namespace tributary {
namespace {

constexpr uint32_t kDoublingsMax = 62;  // shifting by more is undefined

}  // namespace

int64_t Backoff::Next() {
  const uint32_t doublings = failures_++;
  // Shifts the maximum down instead of the minimum up, which could overflow.
  if (at_max_ || doublings > kDoublingsMax || bounds_.min > bounds_.max >> doublings) return bounds_.max;
  return bounds_.min << doublings;
}

int64_t Backoff::NextJittered(std::mt19937_64& random) { return Jittered(Next(), random); }

void Backoff::Reset() {
  failures_ = 0;
  at_max_ = false;
}

int64_t Jittered(int64_t wait, std::mt19937_64& random) {
  return wait / 2 + std::uniform_int_distribution<int64_t>(0, wait / 2)(random);
}

uint64_t SeedOrRandom(uint64_t seed) {
  if (seed != 0) return seed;
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace tributary
