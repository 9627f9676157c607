#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/query/query_engine.h"

namespace tributary {

// The time on each side of a rollout over which CPU time is compared.
constexpr int64_t kRolloutWindowNs = 30 * kNsPerMinute;

struct RolloutsRequest {
  size_t limit = 100;
  bool with_cpu = false;  // for each rollout, which takes two queries
};

// Returns the answer of /api/v1/rollouts: the rollouts within the range of workloads that the selector selects, newest
// first. `query`'s sample type is the type of the CPU time. `log` null: no rollouts. Returns the engine's errors.
absl::StatusOr<std::string> RolloutsJson(QueryEngine& engine, const RolloutLog* log, const QueryRequest& query,
                                         const RolloutsRequest& request, UnixNs now);

}  // namespace tributary
