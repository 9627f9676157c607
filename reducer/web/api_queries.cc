#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/web/answers.h"
#include "reducer/web/api.h"
#include "reducer/web/events_answer.h"
#include "reducer/web/rollouts.h"
#include "reducer/web/source_texts.h"

// The queries of the API: each method checks the parameters of one path, runs a query, and returns its answer as JSON.

namespace tributary {
namespace {

constexpr uint64_t kFlameGraphNodesDefault = 50'000;
constexpr uint64_t kFlameGraphNodesMax = 1'000'000;
constexpr uint64_t kTopDefault = 100;
constexpr uint64_t kTopMax = 100'000;
constexpr uint64_t kBucketsDefault = 120;
constexpr uint64_t kBucketsMax = 2'000;
constexpr uint64_t kSeriesMax = 1'000;
constexpr uint64_t kRolloutsMax = 1'000;
constexpr uint64_t kRolloutsWithCpuDefault = 20, kRolloutsWithCpuMax = 100;
constexpr size_t kHealthExecutablesMax = 50;
constexpr uint64_t kExecutablesDefault = 1'000;
constexpr uint64_t kExecutablesMax = 100'000;

bool UsesThreads(const Selector& selector) {
  return std::ranges::any_of(selector.matchers(), [](const Selector::Matcher& matcher) {
    const std::optional<Label> label = FindLabel(matcher.label);
    return label && IsThreadLabel(*label);
  });
}

// Call it after the query. If the query has used single samples, the answer has no earlier ones than the store.
absl::StatusOr<Measured> MeasuredOf(QueryEngine& engine, const QueryRequest& request, bool uses_single_samples) {
  Measured measured;
  ASSIGN_OR_RETURN(measured.type, engine.FindType(request));
  if (!uses_single_samples) return measured;
  ASSIGN_OR_RETURN(const UnixNs raw_from, engine.FindRawFrom(request));
  if (raw_from > request.range.from) measured.covered_from = std::min(raw_from, request.range.to);
  return measured;
}

}  // namespace

Api::Answer Api::FlameGraphAnswer(const Params& params, QueryRequest request) {
  ASSIGN_OR_RETURN(uint64_t nodes_max,
                   ParseNumber(params, "max_nodes", kFlameGraphNodesDefault, 1, kFlameGraphNodesMax));
  ASSIGN_OR_RETURN(FlameGraph graph, context_.engine.QueryFlameGraph(request, nodes_max));
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, UsesThreads(request.selector)));
  return FlameGraphJson(request, measured, graph);
}

Api::Answer Api::TopAnswer(const Params& params, QueryRequest request) {
  ASSIGN_OR_RETURN(uint64_t limit, ParseNumber(params, "limit", kTopDefault, 1, kTopMax));
  uint64_t value = 0, count = 0;
  ASSIGN_OR_RETURN(std::vector<TopFunction> top, context_.engine.QueryTop(request, limit, &value, &count));
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, UsesThreads(request.selector)));
  return TopJson(request, measured, top, value, count);
}

Api::Answer Api::TimelineAnswer(const Params& params, QueryRequest request) {
  ASSIGN_OR_RETURN(uint64_t buckets, ParseNumber(params, "buckets", kBucketsDefault, 1, kBucketsMax));
  ASSIGN_OR_RETURN(Timeline timeline, context_.engine.QueryTimeline(request, buckets));
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, UsesThreads(request.selector)));
  return TimelineJson(request, measured, timeline);
}

Api::Answer Api::SeriesAnswer(const Params& params, QueryRequest request) {
  ASSIGN_OR_RETURN(uint64_t limit, ParseNumber(params, "limit", kSeriesMax, 1, kSeriesMax));
  ASSIGN_OR_RETURN(SeriesList series, context_.engine.QuerySeries(request, limit));
  RETURN_IF_ERROR(context_.engine.AddEnds(request, &series));
  // Threads are weighed with single samples, whatever the selector is.
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, /*uses_single_samples=*/true));
  return SeriesJson(measured, series);
}

Api::Answer Api::TypesAnswer(const Params&, QueryRequest request) {
  ASSIGN_OR_RETURN(const std::set<SampleTypeInfo> types, context_.engine.QueryTypes(request));
  return TypesJson(types);
}

Api::Answer Api::LabelsAnswer(const Params&, QueryRequest request) {
  ASSIGN_OR_RETURN(std::vector<std::string> labels, context_.engine.QueryLabels(request));
  return LabelsJson(labels);
}

Api::Answer Api::StackHealthAnswer(const Params&, QueryRequest request) {
  ASSIGN_OR_RETURN(StackHealth health, context_.engine.QueryStackHealth(request, kHealthExecutablesMax));
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, /*uses_single_samples=*/true));
  return StackHealthJson(measured, health);
}

Api::Answer Api::SymbolsAnswer(const Params& params, QueryRequest request) {
  ASSIGN_OR_RETURN(uint64_t limit, ParseNumber(params, "limit", kExecutablesDefault, 1, kExecutablesMax));
  ASSIGN_OR_RETURN(ExecutableList executables, context_.engine.QueryExecutables(request, limit));
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, UsesThreads(request.selector)));
  return SymbolsJson(request, measured, executables, context_.notices.List());
}

Api::Answer Api::LinesAnswer(const Params& params, QueryRequest request) {
  FunctionLinesRequest function;
  if (auto name = params.find("function"); name != params.end()) function.name = name->second;
  if (auto name = params.find("executable"); name != params.end()) function.executable = name->second;
  if (function.name.empty()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "function= must be the name of a function, as a flame graph shows it");
  }
  ASSIGN_OR_RETURN(const FunctionLines lines, context_.engine.QueryLines(request, function));
  ASSIGN_OR_RETURN(const Measured measured, MeasuredOf(context_.engine, request, UsesThreads(request.selector)));
  return LinesJson(measured, function, lines, ReadSources(lines, context_.sources, context_.fetched_sources));
}

Api::Answer Api::RolloutsAnswer(const Params& params, QueryRequest request) {
  RolloutsRequest rollouts;
  ASSIGN_OR_RETURN(const uint64_t with_cpu, ParseNumber(params, "cpu", 0, 0, 1));
  rollouts.with_cpu = with_cpu != 0;
  ASSIGN_OR_RETURN(rollouts.limit,
                   ParseNumber(params, "limit", rollouts.with_cpu ? kRolloutsWithCpuDefault : kRolloutsMax, 1,
                               rollouts.with_cpu ? kRolloutsWithCpuMax : kRolloutsMax));
  return RolloutsJson(context_.engine, context_.rollouts, request, rollouts, context_.clock.Unix());
}

Api::Answer Api::ProcessEventsAnswer(const Params& params, QueryRequest request) {
  return EventsAnswer(context_.engine, request, params);
}

Api::Answer Api::ProcessEventMarksAnswer(const Params& params, QueryRequest request) {
  return EventMarksAnswer(context_.engine, request, params);
}

Api::Answer Api::ProcessEventProgramsAnswer(const Params& params, QueryRequest request) {
  return EventProgramsAnswer(context_.engine, request, params);
}

}  // namespace tributary
