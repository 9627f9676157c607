#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/api.h"
#include "cli/flame_graph.h"

namespace tributary::cli {

// Parse the reducer's JSON into structs. InvalidArgument if `json` is not a valid answer of the kind that the function
// parses. ParseFlameGraph checks all indices, so callers need not check them. Unknown keys are ignored.
absl::StatusOr<StatusAnswer> ParseStatus(std::string_view json);
absl::StatusOr<FlameGraph> ParseFlameGraph(std::string_view json);
absl::StatusOr<TopAnswer> ParseTop(std::string_view json);
absl::StatusOr<SeriesAnswer> ParseSeries(std::string_view json);
absl::StatusOr<StackHealthAnswer> ParseStackHealth(std::string_view json);
absl::StatusOr<SymbolsAnswer> ParseSymbols(std::string_view json);
absl::StatusOr<LinesAnswer> ParseLines(std::string_view json);
absl::StatusOr<RolloutsAnswer> ParseRollouts(std::string_view json);
absl::StatusOr<EventsAnswer> ParseEvents(std::string_view json);
absl::StatusOr<EventProgramsAnswer> ParseEventPrograms(std::string_view json);
absl::StatusOr<UploadAnswer> ParseUpload(std::string_view json);

// Returns the text of {"error": …}, or "" if `json` has no such text.
std::string ParseErrorBody(std::string_view json);

// The ports that the reducer writes to its --ports-file, as {"intake": N, "http": N}.
struct Ports {
  uint16_t intake = 0, http = 0;
};
absl::StatusOr<Ports> ParsePorts(std::string_view json);

}  // namespace tributary::cli
