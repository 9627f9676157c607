#include <fmt/format.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/output.h"
#include "cli/query_parameters.h"
#include "cli/server_client.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

constexpr size_t kNameLettersMax = 100;

}  // namespace

std::string WriteTop(const TopAnswer& top) {
  const std::string note = CoverageNote(top.measure);
  if (top.functions.empty()) return "no samples match\n" + note;
  std::vector<std::vector<std::string>> rows;
  for (const TopAnswer::Function& function : top.functions) {
    std::string executable = EscapeForDisplay(function.executable);
    if (function.kind == kKernel && executable.empty()) executable = "[kernel]";
    rows.push_back({FormatPercent(function.self.ns, top.total.ns), FormatPercent(function.total.ns, top.total.ns),
                    FormatValue(function.self.ns, top.measure.unit),
                    CutToWidth(EscapeForDisplay(function.name), kNameLettersMax), executable});
  }
  return fmt::format("{} {} in {} samples\n\n", FormatValue(top.total.ns, top.measure.unit), MeasureTitle(top.measure),
                     FormatCount(top.total.count)) +
         WriteTable({"SELF", "TOTAL", top.measure.unit == "nanoseconds" ? "SELF TIME" : "SELF VALUE", "FUNCTION",
                     "EXECUTABLE"},
                    {true, true, true, false, false}, rows) +
         (note.empty() ? "" : "\n" + note);
}

absl::StatusOr<int> RunTop(const TopOptions& options) {
  HttpClient::Parameters parameters = QueryParameters(options.query);
  AddFrameParameters(options.frames, /*by_address=*/false, &parameters);
  parameters.emplace_back("limit", std::to_string(options.limit));
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/top", parameters));
  ASSIGN_OR_RETURN(TopAnswer top, ParseTop(json));
  RETURN_IF_ERROR(CheckFrameOptions(options.frames, top.has_languages));
  if (options.json && !json.ends_with('\n')) json += '\n';
  RETURN_IF_ERROR(WriteOutput("-", options.json ? json : WriteTop(top)));
  return kExitOk;
}

}  // namespace tributary::cli
