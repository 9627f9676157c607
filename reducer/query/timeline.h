#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

struct QueryContext;

struct Timeline {
  int64_t step_ns = 0;
  std::vector<uint64_t> values, counts;
};

// Divides the request's range into at most `buckets_max` steps of a whole number of ms. If only the sum of a minute is
// left, the sum is spread evenly over the minute's buckets. A gauge's steps are a minute or more. Each has the mean of
// its minutes in which the selection has samples, or 0 if there are none.
absl::StatusOr<Timeline> MakeTimeline(const QueryContext& context, size_t buckets_max);

}  // namespace tributary
