#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/query/query_engine.h"
#include "reducer/web/parse_time.h"

namespace tributary {

// These functions parse the URL parameters that docs/api.md describes. All errors have the code InvalidArgument and a
// message that says which values are valid.

using Params = std::map<std::string, std::string>;

absl::StatusOr<QueryRequest> ParseQuery(const Params& params, UnixNs now);
absl::StatusOr<uint64_t> ParseNumber(const Params& params, const std::string& name, uint64_t value_if_none,
                                     uint64_t min, uint64_t max);

}  // namespace tributary
