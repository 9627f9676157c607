#include "reducer/query/query_request.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tributary {

absl::Status CheckCancelled(const QueryRequest& request) {
  return request.is_cancelled && request.is_cancelled() ? CancelledError() : absl::OkStatus();
}

absl::Status CancelledError() {
  return Error(absl::StatusCode::kDeadlineExceeded,
               "the query took too long, or the reducer is stopping: ask for a shorter time range or a narrower "
               "selector");
}

absl::Status CheckRequest(const QueryRequest& request) {
  if (request.range.from >= request.range.to) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("the time range is empty: 'from' ({} ms) must be before 'to' ({} ms)",
                             request.range.from.value / kNsPerMs, request.range.to.value / kNsPerMs));
  }
  if (request.range.from < kQueryTimes.from || request.range.to > kQueryTimes.to) {
    return Error(absl::StatusCode::kInvalidArgument, "the time range must be within the years 1970 to 2199");
  }
  return CheckCancelled(request);
}

}  // namespace tributary
