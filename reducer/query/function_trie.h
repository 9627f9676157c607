#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "reducer/query/flame_graph.h"

namespace tributary {

using FunctionNo = Strong<struct FunctionNoTag, uint32_t>;
using FunctionNode = Strong<struct FunctionNodeTag, uint32_t>;  // 0 = root

// The answer of a query while it grows: the trie of functions that address tries of many days and shards are mapped
// into. A function is (kind, name, executable's base name): that is what people see, so whatever they could not tell
// apart is one. Parents are older than their children. About 60 bytes a node; one thread.
class FunctionTrie {
 public:
  explicit FunctionTrie(size_t nodes_max);

  // `executable` "" = none.
  FunctionNo InternFunction(FrameKind kind, std::string_view name, std::string_view executable);
  // nullopt: it would be a new node and there are nodes_max.
  std::optional<FunctionNode> Child(FunctionNode parent, FunctionNo function);
  void AddSelf(FunctionNode node, uint64_t value, uint64_t count);
  // At most so many nodes will come: spares moving those that are there.
  void Expect(size_t more);
  // Of this one a child will be asked for soon.
  void Prefetch(FunctionNode parent) const { __builtin_prefetch(&nodes_[parent.value]); }

  size_t node_count() const { return nodes_.size(); }
  size_t nodes_max() const { return nodes_max_; }
  uint64_t TotalValue() const;
  uint64_t TotalCount() const;

  // The `nodes_max` nodes of greatest total value, with all their ancestors: of equal ones the older. Self values stay
  // what they are, so a node that lost children has more total than it and its children explain.
  FlameGraph ToFlameGraph(size_t nodes_max) const;
  std::vector<TopFunction> Top(size_t limit) const;

 private:
  struct Function {
    FrameKind kind;
    uint32_t name;
    int32_t executable;
    friend bool operator==(const Function&, const Function&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Function& f) {
      return H::combine(std::move(h), f.kind, f.name, f.executable);
    }
  };
  struct Node {
    uint32_t parent = 0;
    uint32_t function = 0;
    uint32_t first_child = 0, first_function = 0;  // the oldest child, and its function; most nodes have no other
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
    std::deque<std::string> strings_;  // a deque: the map's keys point into it
    absl::flat_hash_map<absl::string_view, uint32_t> ids_;
  };

  std::vector<Weight> Totals() const;
  std::vector<uint32_t> ChooseLargest(const std::vector<Weight>& totals, size_t nodes_max) const;
  void SortSiblings(const std::vector<Weight>& totals, std::vector<uint32_t>* nodes) const;
  void Renumber(FlameGraph* graph) const;
  void AppendNode(uint32_t node, const Weight& total, int32_t parent, FlameGraph* graph) const;

  size_t nodes_max_;
  Strings names_, executables_;
  std::vector<Function> functions_;  // [0] = the root's
  absl::flat_hash_map<Function, uint32_t> function_ids_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> other_children_;  // parent << 32 | function → node
};

}  // namespace tributary
