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

// Answers questions over all shards: selects processes by label, adds values to trie nodes, folds, names, merges. No
// stack is ever rebuilt. The engine checks a request and gives it to the function that makes the answer; each answer
// has a header of its own. Any thread; each call opens its own readers. Errors of every query: InvalidArgument (the
// request, also a label or a type that nothing has), ResourceExhausted (QueryLimits), DeadlineExceeded (is_cancelled),
// else the store's.
class QueryEngine {
 public:
  // `joiner` null: nothing is known of processes but what the store has. All of it outlives the engine.
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
  // What a request measures: its name and unit.
  absl::StatusOr<SampleTypeInfo> FindType(const QueryRequest& request);
  // What there is to ask for: types that samples of the range have, whatever the selector and the type.
  absl::StatusOr<std::set<SampleTypeInfo>> QueryTypes(const QueryRequest& request);
  // Every label that a selector may speak of, sorted; also those that only processes of the range say they have.
  absl::StatusOr<std::vector<std::string>> QueryLabels(const QueryRequest& request);
  // One a node, over all shards; by host name.
  absl::StatusOr<std::vector<store::NodeStatus>> QueryNodes();

 private:
  QueryContext ContextOf(const QueryRequest& request);
  // Checks the request first, with its labels.
  absl::StatusOr<QueryContext> Check(const QueryRequest& request);

  store::Store& store_;
  SymbolStore& symbols_;
  const QueryLimits limits_;
  const ResourceJoiner* const joiner_;
  std::unique_ptr<AttributeNames> own_names_;  // without a joiner: those that are always known
  AttributeNames& names_;
  std::unique_ptr<DemangleCache> demangled_;
};

}  // namespace tributary
