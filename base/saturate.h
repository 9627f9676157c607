#pragma once

#include <algorithm>
#include <cstdint>

namespace tributary {

// Adds `value` to `*sum`. If the result does not fit, `*sum` becomes 2^64 - 1. For sums of numbers that others send.
inline void AddSaturating(uint64_t value, uint64_t* sum) { *sum += std::min(value, UINT64_MAX - *sum); }

// Returns `value`, or 2^63 - 1 if it is larger.
inline int64_t ClampToInt64(uint64_t value) { return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)); }

// Return the sum or the product of two numbers that are not negative, and at most 2^63 - 1.
inline int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
inline int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace tributary
