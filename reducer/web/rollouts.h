#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/query/query_engine.h"

namespace tributary {

// Length of the two periods that the API compares: one ends at the rollout, the other begins there.
constexpr int64_t kRolloutWindowNs = 30 * kNsPerMinute;

struct RolloutsRequest {
  size_t limit = 100;
  bool with_cpu = false;  // adds the values before and after each rollout
};

// Returns the answer of /api/v1/rollouts: the rollouts in the time range of `query`, newest first, of the workloads and
// services that its selector selects. If `with_cpu` is set, the answer also contains the values before and after each
// rollout, of the sample type of `query`. If `log` is nullptr, the answer lists no rollouts. Returns the errors of
// `engine`.
absl::StatusOr<std::string> RolloutsJson(QueryEngine& engine, const RolloutLog* log, const QueryRequest& query,
                                         const RolloutsRequest& request, UnixNs now);

}  // namespace tributary
