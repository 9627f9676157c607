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

// Divides the request's range into at most `buckets_max` steps of equal length, a whole number of ms. If the selector
// has labels of threads, it uses only raw samples. For other selectors, it uses only sums if a step is a minute or
// longer. If a step is shorter, it uses raw samples, and sums for minutes whose raw samples were deleted. The sum of a
// minute is spread evenly over the steps that the minute covers. For a gauge, a step is at least a minute long, unless
// the whole range is shorter. The value of a gauge's step is the mean over the minutes in which the selection has
// samples, or 0 if there are no such minutes.
absl::StatusOr<Timeline> MakeTimeline(const QueryContext& context, size_t buckets_max);

}  // namespace tributary
