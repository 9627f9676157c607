#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/selector.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary {

// Answers questions over all shards: selects processes by label, adds values to trie nodes, folds, names, merges. No
// stack is ever rebuilt. Any thread; each call opens its own readers.

enum class FrameNames { kFunction, kAddress };

struct QueryRequest {
  Selector selector;
  store::TimeRange range;
  SampleType type = SampleType::kCpu;
  FrameNames frames = FrameNames::kFunction;
};

// Columns; node 0 is the root; parents before children, children in descending total value.
struct FlameGraph {
  enum class Kind : uint8_t { kRoot = 0, kNative = 1, kKernel = 2, kInlined = 3, kUnknown = 4 };
  std::vector<std::string> names;        // [0] = "all"
  std::vector<std::string> executables;  // base names
  std::vector<int32_t> parents;
  std::vector<uint32_t> node_names;
  std::vector<Kind> kinds;
  std::vector<int32_t> node_executables;  // −1: none
  std::vector<uint64_t> total_values, self_values, total_counts, self_counts;
  uint64_t truncated_nodes = 0;
};

struct TopFunction {
  std::string name, executable;
  FlameGraph::Kind kind{};
  uint64_t self_value = 0, self_count = 0, total_value = 0, total_count = 0;
};

struct Timeline {
  int64_t step_ns = 0;
  std::vector<uint64_t> values, counts;
};

struct SeriesList {
  struct Process {
    store::ProcessRow row;
    uint64_t value = 0, count = 0;
  };
  struct Thread {
    Pid pid;
    store::ThreadRow row;
    std::string host_name;
    uint64_t value = 0, count = 0;
  };
  struct Named {
    std::string id, name;
    uint64_t value = 0, count = 0;
  };
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Named> containers, hosts;
  bool truncated = false;
};

class QueryEngine {
 public:
  QueryEngine(store::Store& store, SymbolStore& symbols) : store_(store), symbols_(symbols) {}

  absl::StatusOr<FlameGraph> QueryFlameGraph(const QueryRequest& request, size_t nodes_max);
  absl::StatusOr<std::vector<TopFunction>> QueryTop(const QueryRequest& request, size_t limit, uint64_t* total_value,
                                                    uint64_t* total_count);
  absl::StatusOr<Timeline> QueryTimeline(const QueryRequest& request, size_t buckets);
  absl::StatusOr<SeriesList> QuerySeries(const QueryRequest& request, size_t limit);
  absl::StatusOr<std::vector<store::NodeStatus>> QueryNodes();

 private:
  store::Store& store_;
  SymbolStore& symbols_;
};

}  // namespace tributary
