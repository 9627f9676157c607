#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/query/query_context.h"

namespace tributary {

// A gauge's value over a time is the mean over the minutes in which the selection has samples of the gauge. Other
// minutes do not count, even if other processes were sampled in them. A process that has no snapshot in one of these
// minutes counts as 0 there, so that the parts of an answer add up to the whole: of two selected programs, a program
// that ran for half of the time counts half.

// Returns at least 1. Reads the sums of the whole range.
absl::StatusOr<uint64_t> CountGaugeMinutes(const QueryContext& context);

// Divides a series of sums by the minutes. Carries the remainder of one sum to the next, so the total is exact to 1.
class GaugeMean {
 public:
  explicit GaugeMean(uint64_t minutes) : minutes_(minutes) {}

  void Divide(uint64_t* value, uint64_t* count) {
    if (minutes_ == 1) return;
    *value = Divide(*value, &value_rest_);
    *count = Divide(*count, &count_rest_);
  }

 private:
  uint64_t Divide(uint64_t sum, uint64_t* rest) const {
    const uint64_t quotient = sum / minutes_;
    *rest += sum % minutes_;
    if (*rest < minutes_) return quotient;
    *rest -= minutes_;
    return quotient + 1;
  }

  const uint64_t minutes_;
  uint64_t value_rest_ = 0, count_rest_ = 0;
};

}  // namespace tributary
