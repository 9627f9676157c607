#pragma once

#include <cstdint>

#include "base/strong.h"

namespace tributary {

using Pid = Strong<struct PidTag, int32_t>;  // thread group id in the initial pid namespace
using Tid = Strong<struct TidTag, int32_t>;

// A time in nanoseconds of CLOCK_MONOTONIC, on the machine where it was read. Only times of the same boot can be
// compared.
using MonotonicNs = Strong<struct MonotonicNsTag, int64_t>;
// Nanoseconds since 1970-01-01 UTC.
using UnixNs = Strong<struct UnixNsTag, int64_t>;

constexpr int64_t kNsPerUs = 1'000;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kNsPerMinute = 60 * kNsPerSecond;
constexpr int64_t kNsPerDay = 24 * 60 * kNsPerMinute;

// The readings of the monotonic clock and the unix clock at the same instant. With them, monotonic times of the same
// boot can be converted to unix times.
struct ClockPair {
  MonotonicNs monotonic;
  UnixNs unix;
};

}  // namespace tributary
