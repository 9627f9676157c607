#include <fmt/format.h>

#include "base/status.h"
#include "cli/commands.h"
#include "cli/folded.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/query_parameters.h"
#include "cli/server_client.h"
#include "cli/text.h"

namespace tributary::cli {
namespace {

std::string Draw(const FlameGraph& graph, const FlameGraphOptions& options) {
  Unit unit = options.unit == "count" ? Unit::kCount : Unit::kValue;
  if (options.format == "folded") return WriteFolded(graph, unit, true);
  if (options.format == "folded-address") return WriteFolded(graph, unit, false);
  PictureOptions picture{.title = options.query.query.empty() ? "all processes" : options.query.query, .unit = unit};
  return options.format == "html" ? WriteHtml(graph, picture) : WriteSvg(graph, picture);
}

}  // namespace

absl::StatusOr<int> RunFlameGraph(const FlameGraphOptions& options) {
  HttpClient::Parameters parameters = QueryParameters(options.query);
  AddFrameParameters(options.frames, options.format == "folded-address", &parameters);
  parameters.emplace_back("max_nodes", std::to_string(options.max_nodes));
  ASSIGN_OR_RETURN(const HttpClient client, MakeClient(options.query.server));
  ASSIGN_OR_RETURN(std::string json, client.Get("/api/v1/flamegraph", parameters));
  ASSIGN_OR_RETURN(FlameGraph graph, ParseFlameGraph(json));
  RETURN_IF_ERROR(CheckFrameOptions(options.frames, graph.has_languages));
  bool picture = options.format == "svg" || options.format == "html";
  std::string out = !options.out.empty() ? options.out : picture ? "flamegraph." + options.format : "-";
  if (options.format == "json") {
    if (!json.ends_with('\n')) json += '\n';
    RETURN_IF_ERROR(WriteOutput(out, json));
  } else {
    RETURN_IF_ERROR(WriteOutput(out, Draw(graph, options)));
  }
  if (graph.truncated_nodes > 0) {
    fprintf(stderr, "tributary: %s\n",
            fmt::format("the flame graph lacks the {} smallest frames: raise --max-nodes to include more of them",
                        graph.truncated_nodes)
                .c_str());
  }
  if (const std::string note = CoverageNote(graph.measure); !note.empty()) {
    fprintf(stderr, "tributary: %s", note.c_str());
  }
  if (out != "-") fprintf(stderr, "wrote %s\n", out.c_str());
  return kExitOk;
}

}  // namespace tributary::cli
