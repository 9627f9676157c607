#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/query/query_engine.h"

namespace tributary {

// What CPU time is compared on both sides of a rollout.
constexpr int64_t kRolloutWindowNs = 30 * kNsPerMinute;

struct RolloutsRequest {
  size_t limit = 100;
  bool with_cpu = false;  // of each, which is two queries
};

// The answer of /api/v1/rollouts: those within the range of workloads that the selector means, the newest first.
// `query`'s sample type is that of the CPU time. `log` null: there are none. Errors: the engine's.
absl::StatusOr<std::string> RolloutsJson(QueryEngine& engine, const RolloutLog* log, const QueryRequest& query,
                                         const RolloutsRequest& request, UnixNs now);

}  // namespace tributary
