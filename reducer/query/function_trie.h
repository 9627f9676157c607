#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/query/flame_graph.h"
#include "reducer/query/query_request.h"

namespace tributary {

using FunctionNo = Strong<struct FunctionNoTag, uint32_t>;
using FunctionNode = Strong<struct FunctionNodeTag, uint32_t>;  // 0 = root

// The call tree of a query, with functions as nodes. The query adds the address tries of all days and shards to it. A
// function is identified by (kind, name, base name of the executable), and by its line if the request wants lines.
// Users see only these, so two functions that agree in all of them count as the same function. A parent has a smaller
// node number than its children. A node uses about 60 bytes. Used by one thread.
class FunctionTrie {
 public:
  explicit FunctionTrie(size_t nodes_max);

  struct Line {
    std::string_view file;  // "": unknown
    uint32_t line = 0;      // 0: unknown
  };
  // `executable` "": none.
  FunctionNo InternFunction(FrameKind kind, std::string_view name, std::string_view executable, const Line& line);
  FunctionNo InternFunction(FrameKind kind, std::string_view name, std::string_view executable) {
    return InternFunction(kind, name, executable, Line{});
  }
  FrameKind KindOf(FunctionNo function) const { return functions_[function.value].kind; }
  // Returns the child of `parent` for `function`, and adds it if it is missing. Returns nullopt if the child is missing
  // and there are already nodes_max nodes.
  std::optional<FunctionNode> Child(FunctionNode parent, FunctionNo function);
  void AddSelf(FunctionNode node, uint64_t value, uint64_t count);
  // Reserves memory for `more` new nodes, so that adding them does not move the existing nodes.
  void Expect(size_t more);
  // Prefetches `parent` into the CPU's cache. Call it shortly before Child for this parent.
  void Prefetch(FunctionNode parent) const { __builtin_prefetch(&nodes_[parent.value]); }

  size_t node_count() const { return nodes_.size(); }
  size_t nodes_max() const { return nodes_max_; }
  uint64_t TotalValue() const;
  uint64_t TotalCount() const;

  // Returns the `nodes_max` nodes with the largest total values. Of nodes with equal totals, it prefers the smaller
  // node number, so no node is returned without its ancestors. If children of a node are left out, the node's total
  // value still includes them. DeadlineExceeded: the request was cancelled.
  absl::StatusOr<FlameGraph> ToFlameGraph(size_t nodes_max, const QueryRequest& request) const;
  // DeadlineExceeded: the request was cancelled.
  absl::StatusOr<std::vector<TopFunction>> Top(size_t limit, const QueryRequest& request) const;

 private:
  struct Function {
    FrameKind kind;
    uint32_t name;
    int32_t executable;
    int32_t file = -1;  // −1: unknown
    uint32_t line = 0;
    friend bool operator==(const Function&, const Function&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Function& f) {
      return H::combine(std::move(h), f.kind, f.name, f.executable, f.file, f.line);
    }
  };
  struct Node {
    uint32_t parent = 0;
    uint32_t function = 0;
    uint32_t first_child = 0, first_function = 0;  // the oldest child, and its function; most nodes have no other child
    uint64_t self_value = 0, self_count = 0;
  };
  struct Weight {
    uint64_t value = 0, count = 0;
  };
  class Strings {
   public:
    uint32_t Intern(std::string_view text);
    const std::string& at(uint32_t index) const { return strings_[index]; }
    size_t size() const { return strings_.size(); }

   private:
    std::deque<std::string> strings_;  // a deque, because the map's keys point into it
    absl::flat_hash_map<absl::string_view, uint32_t> ids_;
  };

  absl::StatusOr<std::vector<Weight>> Totals(const QueryRequest& request) const;
  std::vector<uint32_t> ChooseLargest(const std::vector<Weight>& totals, size_t nodes_max) const;
  absl::Status SortSiblings(const QueryRequest& request, const std::vector<Weight>& totals,
                            std::vector<uint32_t>* nodes) const;
  void Renumber(FlameGraph* graph) const;
  void AppendNode(uint32_t node, const Weight& total, int32_t parent, bool lines, FlameGraph* graph) const;

  size_t nodes_max_;
  Strings names_, executables_, files_;
  std::vector<Function> functions_;  // [0]: the root's
  absl::flat_hash_map<Function, uint32_t> function_ids_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> other_children_;  // parent << 32 | function → node
};

}  // namespace tributary
