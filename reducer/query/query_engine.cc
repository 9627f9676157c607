#include "reducer/query/query_engine.h"

#include <algorithm>

#include "base/status.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/demangle_cache.h"
#include "reducer/query/gauge_mean.h"
#include "reducer/query/label_names.h"
#include "reducer/query/nodes.h"
#include "reducer/query/process_ends.h"
#include "reducer/query/query_context.h"
#include "reducer/query/sample_type_names.h"

namespace tributary {

QueryEngine::QueryEngine(store::Store& store, SymbolStore& symbols, QueryLimits limits, const ResourceJoiner* joiner,
                         size_t threads)
    : store_(store),
      symbols_(symbols),
      limits_(limits),
      joiner_(joiner),
      own_names_(joiner == nullptr ? std::make_unique<AttributeNames>() : nullptr),
      names_(joiner == nullptr ? *own_names_ : joiner->names()),
      demangled_(std::make_unique<DemangleCache>()),
      threads_(std::make_unique<ShardThreads>(threads)) {}
QueryEngine::~QueryEngine() = default;

QueryContext QueryEngine::ContextOf(const QueryRequest& request) {
  return {store_,  symbols_, *demangled_,
          request, limits_,  joiner_ == nullptr ? nullptr : std::make_unique<ResourceCache>(*joiner_, request.range),
          {},      1,        threads_.get()};
}

absl::StatusOr<QueryContext> QueryEngine::CheckSelection(const QueryRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  QueryContext context = ContextOf(request);
  RETURN_IF_ERROR(CheckLabelNames(context, names_));
  return context;
}

absl::StatusOr<QueryContext> QueryEngine::Check(const QueryRequest& request) {
  ASSIGN_OR_RETURN(QueryContext context, CheckSelection(request));
  ASSIGN_OR_RETURN(context.type, FindSampleType(store_, request));
  if (context.type.is_gauge()) {
    ASSIGN_OR_RETURN(context.gauge_minutes, CountGaugeMinutes(context));
  }
  return context;
}

absl::StatusOr<FlameGraph> QueryEngine::QueryFlameGraph(const QueryRequest& request, size_t nodes_max) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeFlameGraph(context, nodes_max);
}

absl::StatusOr<std::vector<TopFunction>> QueryEngine::QueryTop(const QueryRequest& request, size_t limit,
                                                               uint64_t* total_value, uint64_t* total_count) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeTop(context, limit, total_value, total_count);
}

absl::StatusOr<Timeline> QueryEngine::QueryTimeline(const QueryRequest& request, size_t buckets_max) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeTimeline(context, buckets_max);
}

absl::StatusOr<SeriesList> QueryEngine::QuerySeries(const QueryRequest& request, size_t limit) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeSeries(context, limit);
}

absl::StatusOr<StackHealth> QueryEngine::QueryStackHealth(const QueryRequest& request, size_t executables_max) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeStackHealth(context, executables_max);
}

absl::StatusOr<ExecutableList> QueryEngine::QueryExecutables(const QueryRequest& request, size_t limit) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeExecutables(context, limit);
}

absl::StatusOr<FunctionLines> QueryEngine::QueryLines(const QueryRequest& request,
                                                      const FunctionLinesRequest& function) {
  ASSIGN_OR_RETURN(const QueryContext context, Check(request));
  return MakeLines(context, function);
}

absl::StatusOr<EventList> QueryEngine::QueryEvents(const QueryRequest& request, const EventListRequest& events) {
  ASSIGN_OR_RETURN(const QueryContext context, CheckSelection(request));
  return MakeEventList(context, events);
}

absl::StatusOr<EventMarks> QueryEngine::QueryEventMarks(const QueryRequest& request, size_t limit) {
  ASSIGN_OR_RETURN(const QueryContext context, CheckSelection(request));
  return MakeEventMarks(context, limit);
}

absl::StatusOr<EventPrograms> QueryEngine::QueryEventPrograms(const QueryRequest& request,
                                                              const EventProgramsRequest& programs) {
  ASSIGN_OR_RETURN(const QueryContext context, CheckSelection(request));
  return MakeEventPrograms(context, programs);
}

absl::Status QueryEngine::AddEnds(const QueryRequest& request, SeriesList* series) {
  RETURN_IF_ERROR(CheckRequest(request));
  return AddProcessEnds(ContextOf(request), series);
}

absl::StatusOr<std::vector<WorkloadUse>> QueryEngine::QueryWorkloadUse(const QueryRequest& request,
                                                                       std::span<const WorkloadWindow> windows) {
  RETURN_IF_ERROR(CheckRequest(request));
  QueryContext context = ContextOf(request);
  ASSIGN_OR_RETURN(context.type, FindSampleType(store_, request));
  return MakeWorkloadUse(context, windows);
}

absl::StatusOr<UnixNs> QueryEngine::FindRawFrom(const QueryRequest& request) {
  UnixNs from{0};
  const absl::Status visited = ForEachShard(store_, request, [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(const UnixNs of_shard, reader.RawFrom());
    from = std::max(from, of_shard);
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(visited);
  return from;
}

absl::StatusOr<SampleTypeInfo> QueryEngine::FindType(const QueryRequest& request) {
  return FindSampleType(store_, request);
}

absl::StatusOr<std::set<SampleTypeInfo>> QueryEngine::QueryTypes(const QueryRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  return ListSampleTypesInRange(store_, request);
}

absl::StatusOr<std::vector<std::string>> QueryEngine::QueryLabels(const QueryRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  RETURN_IF_ERROR(LearnLabelNames(ContextOf(request), names_));
  return names_.List();
}

absl::StatusOr<std::vector<store::NodeStatus>> QueryEngine::QueryNodes(const QueryRequest& request) {
  return ListNodes(store_, request);
}

}  // namespace tributary
