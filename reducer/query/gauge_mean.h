#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/query/query_context.h"

namespace tributary {

// The value of a gauge over a time range is the mean over the minutes in which at least one selected process has
// samples of the gauge. Other minutes do not count, even if processes that are not selected were sampled in them. If a
// selected process has no samples in one of these minutes, its value there is 0. So the values of the processes add up
// to the value of the whole selection.

// Returns the number of these minutes, but at least 1. Reads the sums of the whole range, so it costs as much as a
// timeline.
absl::StatusOr<uint64_t> CountGaugeMinutes(const QueryContext& context);

// Divides sums by the number of minutes. It adds the remainder of each division to the next sum, so that the results
// together differ from the exact total by less than 1.
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
