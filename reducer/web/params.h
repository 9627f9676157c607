#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/query/query_engine.h"

namespace tributary {

// Parses the parameters that docs/api.md allows in the query part of a URL. Every error is InvalidArgument, names the
// parameter and shows correct values.

using Params = std::map<std::string, std::string>;

// Parses a Unix time in ms, `now`, or a time relative to now: `-60s`, `now-5m`, `-1h` (ms, s, m, h, d). The result is
// in whole milliseconds.
absl::StatusOr<UnixNs> ParseTime(std::string_view text, UnixNs now);
absl::StatusOr<QueryRequest> ParseQuery(const Params& params, UnixNs now);
absl::StatusOr<uint64_t> ParseNumber(const Params& params, const std::string& name, uint64_t value_if_none,
                                     uint64_t min, uint64_t max);

}  // namespace tributary
