#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  // Asked now and then on the querying thread; true ends the query with DeadlineExceeded. Empty: never.
  std::function<bool()> is_cancelled;
};

// What one query may hold at once. Beyond: ResourceExhausted, and the message says what to narrow.
struct QueryLimits {
  size_t processes_max = 2'000'000;       // rows of one shard
  size_t address_nodes_max = 32'000'000;  // 16 bytes each, over the days of one shard
  size_t function_nodes_max = 4'000'000;  // about 60 bytes each, of the answer before it is cut
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

// Processes, and what they belong to.
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
    std::string id;          // of a container, pod (uid) or host
    std::string name;        // "" where it is not known
    std::string name_space;  // of a pod, workload or service
    std::string kind;        // of a workload: "deployment"
    uint64_t value = 0, count = 0;
  };
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Named> containers, hosts, pods, namespaces, workloads, services;
  bool truncated = false;
};

// How stacks ended, and which executables cut them short.
struct StackHealth {
  struct Weights {
    uint64_t value = 0, count = 0;
    uint64_t ending_values[kEndingCount] = {}, ending_counts[kEndingCount] = {};
    void Add(Ending ending, uint64_t v, uint64_t c);
    void Add(const Weights& other);
  };
  // The executable of the outermost user frame, the last one walked, of stacks that are neither complete nor
  // kernel_only.
  struct Executable {
    std::string name;                   // base name; kUnmapped, kNoUserFrame
    std::string build_id;               // "" = none
    std::vector<std::string> programs;  // base names of the processes it happened in, most samples first
    Weights weights;
  };
  static constexpr std::string_view kUnmapped = "[unmapped]";          // no file is known behind the address
  static constexpr std::string_view kNoUserFrame = "[no user frame]";  // not one frame of user code was read
  static constexpr size_t kProgramsMax = 5;

  Weights total;
  std::vector<Executable> executables;  // worst first: by samples
  uint64_t truncated_executables = 0;   // left out
};

// What was sampled, and how well its code is known.
struct ExecutableList {
  struct Executable {
    ExecutableId id;
    std::string path;                               // one of its paths; "": only its table is known
    uint64_t self_value = 0, self_count = 0;        // samples whose innermost frame is its code
    uint64_t total_value = 0, total_count = 0;      // samples with a frame of its code
    uint64_t addresses = 0, unnamed_addresses = 0;  // distinct ones
    std::optional<SymbolFiles::Row> symbols;
  };
  std::vector<Executable> executables;  // most samples first, then those that only have a table
  uint64_t value = 0, count = 0;        // of all samples
  uint64_t truncated = 0;               // left out
};

struct FunctionLinesRequest {
  std::string name;        // as a flame graph shows it
  std::string executable;  // base name; "": any
};

// Where in a function's source its samples are.
struct FunctionLines {
  struct Address {
    ExecutableId id;
    uint64_t address = 0;  // as it was sampled; of a call the one it returns to
    uint64_t value = 0, count = 0;
  };
  struct Line {
    std::string file;                           // "": not known
    uint32_t line = 0;                          // 0: not known
    uint64_t self_value = 0, self_count = 0;    // the line itself ran
    uint64_t total_value = 0, total_count = 0;  // or what it called
    std::vector<Address> addresses;
  };
  std::vector<Line> lines;  // by file and line; a sample is in one, that of the innermost call of the function
};

class DemangleCache;
class FunctionTrie;
class ResourceCache;
class ResourceJoiner;

// Errors of every query: InvalidArgument (the request, also a label that nothing has), ResourceExhausted (QueryLimits),
// DeadlineExceeded (is_cancelled), else the store's.
class QueryEngine {
 public:
  // `joiner` null: nothing is known of processes but what the store has. All of it outlives the engine.
  QueryEngine(store::Store& store, SymbolStore& symbols, QueryLimits limits = {},
              const ResourceJoiner* joiner = nullptr);
  ~QueryEngine();

  // Cut to its `nodes_max` largest subtrees.
  absl::StatusOr<FlameGraph> QueryFlameGraph(const QueryRequest& request, size_t nodes_max);
  absl::StatusOr<std::vector<TopFunction>> QueryTop(const QueryRequest& request, size_t limit, uint64_t* total_value,
                                                    uint64_t* total_count);
  // The range in at most `buckets` steps of a whole number of ms. Where only minute sums are left, a minute is spread
  // evenly over its buckets.
  absl::StatusOr<Timeline> QueryTimeline(const QueryRequest& request, size_t buckets);
  absl::StatusOr<SeriesList> QuerySeries(const QueryRequest& request, size_t limit);
  // From raw samples alone: sums do not keep how stacks ended.
  absl::StatusOr<StackHealth> QueryStackHealth(const QueryRequest& request, size_t executables_max);
  absl::StatusOr<ExecutableList> QueryExecutables(const QueryRequest& request, size_t limit);
  absl::StatusOr<FunctionLines> QueryLines(const QueryRequest& request, const FunctionLinesRequest& function);
  // Every label that a selector may speak of, sorted; also those that only processes of the range say they have.
  absl::StatusOr<std::vector<std::string>> QueryLabels(const QueryRequest& request);
  // One a node, over all shards; by host name.
  absl::StatusOr<std::vector<store::NodeStatus>> QueryNodes();

 private:
  absl::Status Fold(const QueryRequest& request, FunctionTrie* trie);
  absl::Status Check(const QueryRequest& request);
  absl::Status MeetNames(const QueryRequest& request);
  std::unique_ptr<ResourceCache> Resources(const QueryRequest& request) const;  // nullptr without a joiner

  store::Store& store_;
  SymbolStore& symbols_;
  const QueryLimits limits_;
  const ResourceJoiner* const joiner_;
  std::unique_ptr<AttributeNames> own_names_;  // without a joiner: those that are always known
  AttributeNames& names_;
  std::unique_ptr<DemangleCache> demangled_;
};

}  // namespace tributary
