#include "cli/query_parameters.h"

#include <fmt/format.h>

#include <string_view>

#include "base/status.h"

namespace tributary::cli {

HttpClient::Parameters QueryParameters(const QueryOptions& query) {
  HttpClient::Parameters parameters = SelectionParameters(query);
  parameters.emplace_back("type", query.type);
  return parameters;
}

HttpClient::Parameters SelectionParameters(const QueryOptions& query) {
  HttpClient::Parameters parameters = {{"from", query.from}, {"to", query.to}};
  if (!query.query.empty()) parameters.emplace_back("query", query.query);
  return parameters;
}

void AddFrameParameters(const FrameOptions& frames, bool by_address, HttpClient::Parameters* parameters) {
  parameters->emplace_back("frames", by_address ? "address" : frames.frames);
  if (frames.lines) parameters->emplace_back("lines", "1");
  if (!frames.language.empty()) parameters->emplace_back("language", frames.language);
}

absl::Status CheckFrameOptions(const FrameOptions& frames, bool has_languages) {
  if (has_languages || (frames.language.empty() && !frames.lines)) return absl::OkStatus();
  const std::string_view option = frames.language.empty() ? "--lines" : "--language";
  return Error(
      absl::StatusCode::kUnimplemented,
      fmt::format("the reducer is of an earlier release, which ignores {}: upgrade it, or leave out the option",
                  option));
}

}  // namespace tributary::cli
