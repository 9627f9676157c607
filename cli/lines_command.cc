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

constexpr size_t kPlaceLettersMax = 60;
constexpr size_t kTextLettersMax = 100;

// The end of a path is more useful than its beginning.
std::string PlaceOf(const LinesAnswer::Line& line) {
  if (line.file.empty()) return "??";
  std::string place = fmt::format("{}:{}", line.file, line.line);
  if (place.size() > kPlaceLettersMax) {
    const size_t slash = place.find('/', place.size() - kPlaceLettersMax);
    if (slash != std::string::npos) place = "…" + place.substr(slash);
  }
  return EscapeForDisplay(place);
}

}  // namespace

std::string WriteLines(const LinesAnswer& lines) {
  if (lines.lines.empty()) {
    return "no selected sample contains a function with this name: write the full name, as tributary top --json prints "
           "it\n";
  }
  Values whole;
  for (const LinesAnswer::Line& line : lines.lines) whole += line.total;
  std::vector<std::vector<std::string>> rows;
  for (const LinesAnswer::Line& line : lines.lines) {
    rows.push_back({FormatPercent(line.self.ns, whole.ns), FormatPercent(line.total.ns, whole.ns),
                    FormatValue(line.total.ns, lines.measure.unit), PlaceOf(line),
                    CutToWidth(EscapeForDisplay(line.text), kTextLettersMax)});
  }
  std::string out =
      fmt::format("{} {} in {} samples\n\n", FormatValue(whole.ns, lines.measure.unit), MeasureTitle(lines.measure),
                  FormatCount(whole.count)) +
      WriteTable({"SELF", "TOTAL", lines.measure.unit == "nanoseconds" ? "TOTAL TIME" : "TOTAL VALUE", "LINE", ""},
                 {true, true, true, false, false}, rows);
  if (lines.files_coming > 0) {
    out += fmt::format("\nthe reducer is fetching the text of {} {}: run the command again in a moment\n",
                       lines.files_coming, lines.files_coming == 1 ? "file" : "files");
  }
  if (const std::string note = CoverageNote(lines.measure); !note.empty()) out += "\n" + note;
  return out;
}

absl::StatusOr<int> RunLines(const LinesOptions& options) {
  HttpClient::Parameters parameters = QueryParameters(options.query);
  parameters.emplace_back("function", options.function);
  if (!options.executable.empty()) parameters.emplace_back("executable", options.executable);
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/lines", parameters));
  ASSIGN_OR_RETURN(const LinesAnswer lines, ParseLines(json));
  if (options.json && !json.ends_with('\n')) json += '\n';
  RETURN_IF_ERROR(WriteOutput("-", options.json ? json : WriteLines(lines)));
  return kExitOk;
}

}  // namespace tributary::cli
