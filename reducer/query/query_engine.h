#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/executables.h"
#include "reducer/query/flame_graph.h"
#include "reducer/query/lines.h"
#include "reducer/query/query_request.h"
#include "reducer/query/series.h"
#include "reducer/query/stack_health.h"
#include "reducer/query/timeline.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

class AttributeNames;
class DemangleCache;
class ResourceJoiner;
struct QueryContext;

// Answers queries over the data of all shards. The engine checks a request and passes it to the function that makes the
// answer; each answer has its own header. To make an answer, processes are selected by label, values are added to trie
// nodes, and the nodes are folded, named and merged. Stacks are never rebuilt. Any thread may call it; each call opens
// its own readers. Errors of every query: InvalidArgument (the request, or a label or type that nothing has),
// ResourceExhausted (QueryLimits), DeadlineExceeded (is_cancelled), or the store's errors.
class QueryEngine {
 public:
  // `joiner` null: only the store's data about processes is known. All borrowed objects must outlive the engine.
  QueryEngine(store::Store& store, SymbolStore& symbols, QueryLimits limits = {},
              const ResourceJoiner* joiner = nullptr);
  ~QueryEngine();

  absl::StatusOr<FlameGraph> QueryFlameGraph(const QueryRequest& request, size_t nodes_max);
  absl::StatusOr<std::vector<TopFunction>> QueryTop(const QueryRequest& request, size_t limit, uint64_t* total_value,
                                                    uint64_t* total_count);
  absl::StatusOr<Timeline> QueryTimeline(const QueryRequest& request, size_t buckets_max);
  absl::StatusOr<SeriesList> QuerySeries(const QueryRequest& request, size_t limit);
  absl::StatusOr<StackHealth> QueryStackHealth(const QueryRequest& request, size_t executables_max);
  absl::StatusOr<ExecutableList> QueryExecutables(const QueryRequest& request, size_t limit);
  absl::StatusOr<FunctionLines> QueryLines(const QueryRequest& request, const FunctionLinesRequest& function);
  // Returns the type that a request measures: its name and unit.
  absl::StatusOr<SampleTypeInfo> FindType(const QueryRequest& request);
  // Returns the types that samples of the range have, regardless of the request's selector and type.
  absl::StatusOr<std::set<SampleTypeInfo>> QueryTypes(const QueryRequest& request);
  // Returns every label that a selector may use, sorted. Includes labels that only processes of the range have.
  absl::StatusOr<std::vector<std::string>> QueryLabels(const QueryRequest& request);
  // Returns one row per node, merged over all shards, sorted by host name.
  absl::StatusOr<std::vector<store::NodeStatus>> QueryNodes();

 private:
  QueryContext ContextOf(const QueryRequest& request);
  // Returns the context of the request. Checks the request and its labels first.
  absl::StatusOr<QueryContext> Check(const QueryRequest& request);

  store::Store& store_;
  SymbolStore& symbols_;
  const QueryLimits limits_;
  const ResourceJoiner* const joiner_;
  std::unique_ptr<AttributeNames> own_names_;  // without a joiner: the names that are always known
  AttributeNames& names_;
  std::unique_ptr<DemangleCache> demangled_;
};

}  // namespace tributary
