#include "reducer/query/function_trie.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/status.h"
#include "reducer/query/sort_in_steps.h"

namespace tributary {

uint32_t FunctionTrie::Strings::Intern(std::string_view text) {
  if (auto it = ids_.find(ToAbsl(text)); it != ids_.end()) return it->second;
  auto id = static_cast<uint32_t>(strings_.size());
  strings_.emplace_back(text);
  ids_.emplace(ToAbsl(strings_.back()), id);
  return id;
}

FunctionTrie::FunctionTrie(size_t nodes_max) : nodes_max_(std::max<size_t>(nodes_max, 1)) {
  functions_.push_back(Function{FrameKind::kRoot, names_.Intern("all"), -1});
  nodes_.emplace_back();
}

FunctionNo FunctionTrie::InternFunction(FrameKind kind, std::string_view name, std::string_view executable,
                                        const Line& line) {
  auto intern = [](Strings& strings, std::string_view text) {
    return text.empty() ? -1 : static_cast<int32_t>(strings.Intern(text));
  };
  const Function function{kind, names_.Intern(name), intern(executables_, executable), intern(files_, line.file),
                          line.line};
  auto [it, added] = function_ids_.try_emplace(function, static_cast<uint32_t>(functions_.size()));
  if (added) functions_.push_back(function);
  return FunctionNo{it->second};
}

std::optional<FunctionNode> FunctionTrie::Child(FunctionNode parent, FunctionNo function) {
  const Node& above = nodes_[parent.value];
  const bool has_first = above.first_child != 0;
  if (has_first && above.first_function == function.value) return FunctionNode{above.first_child};
  const uint64_t key = uint64_t{parent.value} << 32 | function.value;
  const auto node = static_cast<uint32_t>(nodes_.size());
  if (nodes_.size() >= nodes_max_) {
    const auto it = other_children_.find(key);
    return it != other_children_.end() ? std::optional(FunctionNode{it->second}) : std::nullopt;
  }
  if (has_first) {
    const auto [it, added] = other_children_.try_emplace(key, node);
    if (!added) return FunctionNode{it->second};
  } else {
    nodes_[parent.value].first_child = node;
    nodes_[parent.value].first_function = function.value;
  }
  nodes_.push_back(Node{.parent = parent.value, .function = function.value});
  return FunctionNode{node};
}

void FunctionTrie::Expect(size_t more) {
  const size_t wanted = std::min(nodes_max_, nodes_.size() + more);
  if (wanted > nodes_.capacity()) nodes_.reserve(std::max(wanted, nodes_.capacity() * 2));
}

void FunctionTrie::AddSelf(FunctionNode node, uint64_t value, uint64_t count) {
  nodes_[node.value].self_value += value;
  nodes_[node.value].self_count += count;
}

uint64_t FunctionTrie::TotalValue() const {
  return std::accumulate(nodes_.begin(), nodes_.end(), uint64_t{0},
                         [](uint64_t sum, const Node& node) { return sum + node.self_value; });
}

uint64_t FunctionTrie::TotalCount() const {
  return std::accumulate(nodes_.begin(), nodes_.end(), uint64_t{0},
                         [](uint64_t sum, const Node& node) { return sum + node.self_count; });
}

absl::StatusOr<std::vector<FunctionTrie::Weight>> FunctionTrie::Totals(const QueryRequest& request) const {
  std::vector<Weight> totals(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) totals[i] = Weight{nodes_[i].self_value, nodes_[i].self_count};
  for (size_t i = nodes_.size() - 1; i > 0; --i) {
    RETURN_IF_ERROR(CheckCancelledAt(request, i));
    totals[nodes_[i].parent].value += totals[i].value;
    totals[nodes_[i].parent].count += totals[i].count;
  }
  return totals;
}

// A parent's total is at least its child's, and the parent is older. So in this order, no node is chosen without its
// ancestors.
std::vector<uint32_t> FunctionTrie::ChooseLargest(const std::vector<Weight>& totals, size_t nodes_max) const {
  std::vector<uint32_t> chosen(nodes_.size());
  std::iota(chosen.begin(), chosen.end(), 0u);
  nodes_max = std::max<size_t>(nodes_max, 1);
  if (chosen.size() <= nodes_max) return chosen;
  std::nth_element(chosen.begin(), chosen.begin() + static_cast<ptrdiff_t>(nodes_max - 1), chosen.end(),
                   [&totals](uint32_t a, uint32_t b) {
                     if (totals[a].value != totals[b].value) return totals[a].value > totals[b].value;
                     return a < b;
                   });
  chosen.resize(nodes_max);
  return chosen;
}

void FunctionTrie::AppendNode(uint32_t node, const Weight& total, int32_t parent, bool lines, FlameGraph* graph) const {
  const Function& function = functions_[nodes_[node].function];
  graph->parents.push_back(parent);
  graph->kinds.push_back(function.kind);
  graph->node_names.push_back(function.name);
  graph->node_executables.push_back(function.executable);
  graph->total_values.push_back(total.value);
  graph->total_counts.push_back(total.count);
  graph->self_values.push_back(nodes_[node].self_value);
  graph->self_counts.push_back(nodes_[node].self_count);
  if (!lines) return;
  graph->node_files.push_back(function.file);
  graph->node_lines.push_back(function.line);
}

// Puts siblings together, in the order in which they are shown. Names break ties, so that equal data give equal
// answers. The root comes first.
absl::Status FunctionTrie::SortSiblings(const QueryRequest& request, const std::vector<Weight>& totals,
                                        std::vector<uint32_t>* nodes) const {
  return SortInSteps(request, nodes, [&](uint32_t a, uint32_t b) {
    if (a == 0 || b == 0) return a == 0 && b != 0;
    if (nodes_[a].parent != nodes_[b].parent) return nodes_[a].parent < nodes_[b].parent;
    if (totals[a].value != totals[b].value) return totals[a].value > totals[b].value;
    if (totals[a].count != totals[b].count) return totals[a].count > totals[b].count;
    const Function& fa = functions_[nodes_[a].function];
    const Function& fb = functions_[nodes_[b].function];
    if (fa.name != fb.name) return names_.at(fa.name) < names_.at(fb.name);
    return std::tie(fa.kind, fa.executable, fa.line, a) < std::tie(fb.kind, fb.executable, fb.line, b);
  });
}

// Keeps only the names, executables and files that are in use, numbered in the order of nodes.
void FunctionTrie::Renumber(FlameGraph* graph) const {
  std::vector<int32_t> name_numbers(names_.size(), -1);
  for (uint32_t& name : graph->node_names) {
    int32_t& number = name_numbers[name];
    if (number < 0) {
      number = static_cast<int32_t>(graph->names.size());
      graph->names.push_back(names_.at(name));
    }
    name = static_cast<uint32_t>(number);
  }
  auto renumber = [](const Strings& strings, std::vector<int32_t>* column, std::vector<std::string>* used) {
    std::vector<int32_t> numbers(strings.size(), -1);
    for (int32_t& string : *column) {
      if (string < 0) continue;
      int32_t& number = numbers[static_cast<size_t>(string)];
      if (number < 0) {
        number = static_cast<int32_t>(used->size());
        used->push_back(strings.at(static_cast<uint32_t>(string)));
      }
      string = number;
    }
  };
  renumber(executables_, &graph->node_executables, &graph->executables);
  renumber(files_, &graph->node_files, &graph->files);
}

absl::StatusOr<FlameGraph> FunctionTrie::ToFlameGraph(size_t nodes_max, const QueryRequest& request) const {
  ASSIGN_OR_RETURN(const std::vector<Weight> totals, Totals(request));
  std::vector<uint32_t> chosen = ChooseLargest(totals, nodes_max);
  RETURN_IF_ERROR(SortSiblings(request, totals, &chosen));
  std::vector<uint32_t> first_child(nodes_.size(), 0);  // index into `chosen`; 0: none, because 0 is the root
  for (size_t i = chosen.size() - 1; i > 0; --i) first_child[nodes_[chosen[i]].parent] = static_cast<uint32_t>(i);

  FlameGraph graph;
  size_t size = chosen.size();
  for (auto* column : {&graph.total_values, &graph.self_values, &graph.total_counts, &graph.self_counts}) {
    column->reserve(size);
  }
  graph.parents.reserve(size);
  graph.kinds.reserve(size);
  graph.node_names.reserve(size);
  graph.node_executables.reserve(size);
  if (request.lines) {
    graph.node_files.reserve(size);
    graph.node_lines.reserve(size);
  }
  graph.truncated_nodes = nodes_.size() - size;

  // Depth first. A stack entry is a position in `chosen`. It stands for that node and the siblings after it.
  struct Pending {
    uint32_t position;
    int32_t parent;
  };
  std::vector<Pending> stack = {{0, -1}};
  while (!stack.empty()) {
    RETURN_IF_ERROR(CheckCancelledAt(request, graph.parents.size() + 1));
    Pending& top = stack.back();
    uint32_t position = top.position;
    uint32_t node = chosen[position];
    int32_t parent = top.parent;
    bool has_sibling =
        position != 0 && position + 1 < size && nodes_[chosen[position + 1]].parent == nodes_[node].parent;
    if (has_sibling) {
      ++top.position;
    } else {
      stack.pop_back();
    }
    auto index = static_cast<int32_t>(graph.parents.size());
    AppendNode(node, totals[node], parent, request.lines, &graph);
    if (first_child[node] != 0) stack.push_back({first_child[node], index});
  }
  Renumber(&graph);
  return graph;
}

absl::StatusOr<std::vector<TopFunction>> FunctionTrie::Top(size_t limit, const QueryRequest& request) const {
  ASSIGN_OR_RETURN(const std::vector<Weight> totals, Totals(request));
  std::vector<uint32_t> first_child(nodes_.size(), 0), next_sibling(nodes_.size(), 0);
  for (auto i = static_cast<uint32_t>(nodes_.size()) - 1; i > 0; --i) {
    next_sibling[i] = first_child[nodes_[i].parent];
    first_child[nodes_[i].parent] = i;
  }

  // One walk, depth first. A function's outermost occurrence on a path contains all samples of its inner occurrences.
  std::vector<Weight> self(functions_.size()), total(functions_.size());
  std::vector<uint32_t> on_path(functions_.size(), 0);
  auto enter = [&](uint32_t node) {
    uint32_t function = nodes_[node].function;
    self[function].value += nodes_[node].self_value;
    self[function].count += nodes_[node].self_count;
    if (on_path[function]++ == 0) {
      total[function].value += totals[node].value;
      total[function].count += totals[node].count;
    }
  };
  uint32_t node = 0;
  enter(node);
  for (size_t entered = 1;; ++entered) {
    RETURN_IF_ERROR(CheckCancelledAt(request, entered));
    if (first_child[node] != 0) {
      node = first_child[node];
    } else {
      while (node != 0 && next_sibling[node] == 0) {
        --on_path[nodes_[node].function];
        node = nodes_[node].parent;
      }
      if (node == 0) break;
      --on_path[nodes_[node].function];
      node = next_sibling[node];
    }
    enter(node);
  }

  std::vector<uint32_t> order(functions_.size() - 1);  // without the root
  std::iota(order.begin(), order.end(), 1u);
  auto before = [&](uint32_t a, uint32_t b) {
    if (self[a].value != self[b].value) return self[a].value > self[b].value;
    if (total[a].value != total[b].value) return total[a].value > total[b].value;
    if (functions_[a].name != functions_[b].name) return names_.at(functions_[a].name) < names_.at(functions_[b].name);
    if (functions_[a].line != functions_[b].line) return functions_[a].line < functions_[b].line;
    return a < b;
  };
  RETURN_IF_ERROR(CheckCancelled(request));
  limit = std::min(limit, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(limit), order.end(), before);
  std::vector<TopFunction> top;
  top.reserve(limit);
  for (size_t i = 0; i < limit; ++i) {
    const Function& function = functions_[order[i]];
    if (total[order[i]].count == 0 && total[order[i]].value == 0) continue;
    top.push_back(TopFunction{
        .name = names_.at(function.name),
        .executable = function.executable < 0 ? "" : executables_.at(static_cast<uint32_t>(function.executable)),
        .file = function.file < 0 ? "" : files_.at(static_cast<uint32_t>(function.file)),
        .line = function.line,
        .kind = function.kind,
        .self_value = self[order[i]].value,
        .self_count = self[order[i]].count,
        .total_value = total[order[i]].value,
        .total_count = total[order[i]].count});
  }
  return top;
}

}  // namespace tributary
