#pragma once

#include <algorithm>
#include <cstdint>

namespace tributary {

// Adds `value` to `*sum`. If the result does not fit, `*sum` becomes 2^64 - 1. For sums of numbers that others send.
inline void AddSaturating(uint64_t value, uint64_t* sum) { *sum += std::min(value, UINT64_MAX - *sum); }

}  // namespace tributary
