#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "reducer/query/query_engine.h"
#include "reducer/web/params.h"

namespace tributary {

// Return the answers of /api/v1/events, /api/v1/events/marks and /api/v1/events/programs (docs/api.md).
// InvalidArgument: a parameter is wrong. Also return the errors of `engine`.
absl::StatusOr<std::string> EventsAnswer(QueryEngine& engine, const QueryRequest& request, const Params& params);
absl::StatusOr<std::string> EventMarksAnswer(QueryEngine& engine, const QueryRequest& request, const Params& params);
absl::StatusOr<std::string> EventProgramsAnswer(QueryEngine& engine, const QueryRequest& request, const Params& params);

}  // namespace tributary
