#include "reducer/store/store_times.h"

#include <algorithm>

namespace tributary::store {
namespace {

constexpr int64_t kEarliestNs = 1'577'836'800 * kNsPerSecond;  // 2020-01-01

}  // namespace

SampleTimes::SampleTimes(const ClockPair& clock, int64_t now_ns)
    : monotonic_(clock.monotonic),
      is_sane_(clock.unix.value >= kEarliestNs && clock.unix.value <= now_ns + kFutureMaxNs) {
  batch_ns_ = is_sane_ ? clock.unix.value : now_ns;
  min_ns_ = std::max(kEarliestNs, batch_ns_ - kNsPerDay);
  max_ns_ = now_ns + kFutureMaxNs;
}

int64_t SampleTimes::ToUnixNs(MonotonicNs time, bool* clamped) const {
  // Computes in 128 bits, because both readings come from outside.
  const __int128 unix_ns = static_cast<__int128>(batch_ns_) + time.value - monotonic_.value;
  const bool possible = unix_ns >= min_ns_ && unix_ns <= max_ns_;
  *clamped = !possible || !is_sane_;
  return possible ? static_cast<int64_t>(unix_ns) : batch_ns_;
}

int64_t SampleTimes::BootNs() const {
  const __int128 unix_ns = static_cast<__int128>(batch_ns_) - monotonic_.value;
  return unix_ns < 0 || unix_ns > batch_ns_ ? 0 : static_cast<int64_t>(unix_ns);
}

}  // namespace tributary::store
