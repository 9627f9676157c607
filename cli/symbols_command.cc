#include <fmt/format.h>

#include <algorithm>

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

constexpr size_t kNameLettersMax = 64;  // fits the kernel's causes of missing names, and BPF programs
constexpr size_t kBuildIdLetters = 16;
constexpr size_t kNoticesMax = 20;
constexpr size_t kBuildIdLettersMin = 6;  // fewer letters of a build-id may fit a table that the user does not mean
constexpr std::string_view kPath = "/api/v1/symbols";

std::string OriginOf(const SymbolTableAnswer& table) {
  std::string origin = EscapeForDisplay(table.origin);
  if (table.origin == "nodes") origin = fmt::format("{} nodes", std::max<size_t>(table.nodes.size(), 2));
  return table.contested ? origin + " (contested)" : origin;
}

std::vector<std::string> RowOf(const SymbolsAnswer::Executable& executable, uint64_t total_ns) {
  const std::string& name = executable.name.empty() ? executable.path : executable.name;
  std::vector<std::string> row = {FormatPercent(executable.total_ns, total_ns),
                                  FormatPercent(executable.unnamed_addresses, executable.addresses),
                                  "-",
                                  "-",
                                  "-",
                                  "-",
                                  CutToWidth(EscapeForDisplay(executable.build_id), kBuildIdLetters),
                                  name.empty() ? "-" : CutToWidth(EscapeForDisplay(name), kNameLettersMax)};
  if (executable.symbols) {
    row[2] = EscapeForDisplay(executable.symbols->source);
    row[3] = OriginOf(*executable.symbols);
    row[4] = FormatCount(executable.symbols->functions);
    row[5] = FormatBytes(executable.symbols->bytes);
  }
  return row;
}

}  // namespace

std::string WriteSymbols(const SymbolsAnswer& symbols) {
  std::string out = "no executable was sampled in this time range, and the reducer has no symbol table\n";
  if (!symbols.executables.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& executable : symbols.executables) rows.push_back(RowOf(executable, symbols.total_ns));
    out = WriteTable({"SAMPLES", "UNNAMED", "NAMES FROM", "ORIGIN", "FUNCTIONS", "SIZE", "BUILD-ID", "EXECUTABLE"},
                     {true, true, false, false, true, true, false, false}, rows);
  }
  if (symbols.truncated > 0)
    out += fmt::format("{} more executables are not shown: raise --limit\n", FormatCount(symbols.truncated));
  if (!symbols.notices.empty()) out += "\nProblems with symbols, newest first:\n";
  size_t shown = 0;
  for (const SymbolsAnswer::Notice& notice : symbols.notices) {
    if (++shown > kNoticesMax) break;
    out += fmt::format("  {}{}{}{}\n", EscapeForDisplay(notice.text), notice.build_id.empty() ? "" : ", build-id ",
                       EscapeForDisplay(notice.build_id),
                       notice.times > 1 ? fmt::format(", {} times", FormatCount(notice.times)) : "");
  }
  return out;
}

absl::StatusOr<std::string> FindTable(const SymbolsAnswer& symbols, std::string_view text) {
  const std::string shown = EscapeForDisplay(text);
  if (text.size() < kBuildIdLettersMin) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{}: give at least {} letters of the build-id", shown, kBuildIdLettersMin));
  }
  std::string found;
  for (const SymbolsAnswer::Executable& executable : symbols.executables) {
    if (!executable.symbols || !executable.build_id.starts_with(text)) continue;
    if (executable.build_id == text) return executable.build_id;
    if (!found.empty()) {
      return Error(absl::StatusCode::kInvalidArgument, shown + ": several build-ids begin with these letters");
    }
    found = executable.build_id;
  }
  if (!found.empty()) return found;
  return Error(absl::StatusCode::kNotFound, shown + ": the reducer has no symbol table with this build-id");
}

absl::StatusOr<int> RunRemoveSymbols(const RemoveSymbolsOptions& options) {
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.server));
  // Tables are listed whether they have samples or not, so a short time range is enough.
  ASSIGN_OR_RETURN(const std::string json, client.Get(kPath, {{"from", "-1s"}, {"limit", "100000"}}));
  ASSIGN_OR_RETURN(const SymbolsAnswer symbols, ParseSymbols(json));
  std::vector<std::string> build_ids;
  for (const std::string& text : options.build_ids) {
    ASSIGN_OR_RETURN(build_ids.emplace_back(), FindTable(symbols, text));
  }
  for (const std::string& build_id : build_ids) {
    ASSIGN_OR_RETURN(const std::string answer, client.Delete(kPath, {{"build-id", build_id}}));
    fmt::print("{}  deleted\n", EscapeForDisplay(build_id));
  }
  return kExitOk;
}

absl::StatusOr<int> RunSymbols(const SymbolsOptions& options) {
  HttpClient::Parameters parameters = QueryParameters(options.query);
  parameters.emplace_back("limit", std::to_string(options.limit));
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get(kPath, parameters));
  ASSIGN_OR_RETURN(const SymbolsAnswer symbols, ParseSymbols(json));
  if (options.json && !json.ends_with('\n')) json += '\n';
  RETURN_IF_ERROR(WriteOutput("-", options.json ? json : WriteSymbols(symbols)));
  return kExitOk;
}

}  // namespace tributary::cli
