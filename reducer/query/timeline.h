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

// The request's range in at most `buckets_max` steps of a whole number of ms. Where only minute sums are left, a minute
// is spread evenly over its buckets. A gauge's steps are a minute or more; each has the mean of its minutes in which
// the selection has samples, and 0 where there are none.
absl::StatusOr<Timeline> MakeTimeline(const QueryContext& context, size_t buckets_max);

}  // namespace tributary
