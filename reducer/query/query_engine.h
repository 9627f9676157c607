#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/event_list.h"
#include "reducer/query/event_marks.h"
#include "reducer/query/event_programs.h"
#include "reducer/query/executables.h"
#include "reducer/query/flame_graph.h"
#include "reducer/query/lines.h"
#include "reducer/query/query_request.h"
#include "reducer/query/series.h"
#include "reducer/query/stack_health.h"
#include "reducer/query/timeline.h"
#include "reducer/query/workload_use.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

class AttributeNames;
class DemangleCache;
class ResourceJoiner;
class ShardThreads;
struct QueryContext;

// Answers queries over the data of all shards. The engine checks a request and passes it to a function that computes
// the answer, such as MakeTop in flame_graph.h. MakeTop selects processes by their labels, adds values to the nodes of
// the address tries, and maps these nodes to functions. It does not rebuild stacks. Any thread may call the methods;
// each call opens its own readers. Every query can return InvalidArgument (the request is wrong, or its label or type
// does not exist), ResourceExhausted (over a limit of QueryLimits), DeadlineExceeded (is_cancelled returned true), and
// the store's errors.
class QueryEngine {
 public:
  // `joiner` adds metadata such as pods to processes. If it is nullptr, selectors and answers use only the labels that
  // are in the store. `threads` read shards at the same time, in addition to the callers' own threads. All borrowed
  // objects must outlive the engine.
  QueryEngine(store::Store& store, SymbolStore& symbols, QueryLimits limits = {},
              const ResourceJoiner* joiner = nullptr, size_t threads = 0);
  ~QueryEngine();

  absl::StatusOr<FlameGraph> QueryFlameGraph(const QueryRequest& request, size_t nodes_max);
  absl::StatusOr<std::vector<TopFunction>> QueryTop(const QueryRequest& request, size_t limit, uint64_t* total_value,
                                                    uint64_t* total_count);
  absl::StatusOr<Timeline> QueryTimeline(const QueryRequest& request, size_t buckets_max);
  absl::StatusOr<SeriesList> QuerySeries(const QueryRequest& request, size_t limit);
  absl::StatusOr<StackHealth> QueryStackHealth(const QueryRequest& request, size_t executables_max);
  absl::StatusOr<ExecutableList> QueryExecutables(const QueryRequest& request, size_t limit);
  absl::StatusOr<FunctionLines> QueryLines(const QueryRequest& request, const FunctionLinesRequest& function);
  // The next three ignore the request's type. They return InvalidArgument if the selector has labels of threads.
  absl::StatusOr<EventList> QueryEvents(const QueryRequest& request, const EventListRequest& events);
  absl::StatusOr<EventMarks> QueryEventMarks(const QueryRequest& request, size_t limit);
  absl::StatusOr<EventPrograms> QueryEventPrograms(const QueryRequest& request, const EventProgramsRequest& programs);
  // Adds the ends of processes to the result of QuerySeries for the same request.
  absl::Status AddEnds(const QueryRequest& request, SeriesList* series);
  // Returns the use of each window, as MakeWorkloadUse describes it.
  absl::StatusOr<std::vector<WorkloadUse>> QueryWorkloadUse(const QueryRequest& request,
                                                            std::span<const WorkloadWindow> windows);
  // Returns the time from which on the store has all single samples. Earlier samples may be left only in sums, which
  // contain neither threads nor how stacks ended. Ask after the query that it is for, because samples may expire
  // meanwhile.
  absl::StatusOr<UnixNs> FindRawFrom(const QueryRequest& request);
  // Returns the sample type that `request.type` names.
  absl::StatusOr<SampleTypeInfo> FindType(const QueryRequest& request);
  // Returns the types of the samples in the request's range. Ignores the selector and the type of the request.
  absl::StatusOr<std::set<SampleTypeInfo>> QueryTypes(const QueryRequest& request);
  // Returns all labels that a selector may use, sorted. The result includes the attributes that processes in the
  // request's range have set themselves.
  absl::StatusOr<std::vector<std::string>> QueryLabels(const QueryRequest& request);
  // Returns one row per node, sorted by host name. Uses only the function is_cancelled of the request.
  absl::StatusOr<std::vector<store::NodeStatus>> QueryNodes(const QueryRequest& request = {});

 private:
  QueryContext ContextOf(const QueryRequest& request);
  // Checks the request and its labels, and returns the context for it.
  absl::StatusOr<QueryContext> CheckSelection(const QueryRequest& request);
  // Also checks the request's type.
  absl::StatusOr<QueryContext> Check(const QueryRequest& request);

  store::Store& store_;
  SymbolStore& symbols_;
  const QueryLimits limits_;
  const ResourceJoiner* const joiner_;
  std::unique_ptr<AttributeNames> own_names_;  // used if there is no joiner
  AttributeNames& names_;
  std::unique_ptr<DemangleCache> demangled_;
  std::unique_ptr<ShardThreads> threads_;
};

}  // namespace tributary
