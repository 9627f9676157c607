#include "cli/flame_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tributary::cli {
namespace {

// Numbers strings in order of first use.
class Names {
 public:
  explicit Names(std::vector<std::string>& out) : out_(out) {}
  int32_t Number(const std::string& name) {
    auto [it, added] = ids_.try_emplace(name, static_cast<int32_t>(out_.size()));
    if (added) out_.push_back(name);
    return it->second;
  }

 private:
  std::vector<std::string>& out_;
  std::map<std::string, int32_t> ids_;
};

// Returns the number of another graph's kind in this graph's list. Adds the kind if it is missing.
uint8_t KindIn(std::vector<FrameKind>& kinds, const FrameKind& kind) {
  auto it = std::find(kinds.begin(), kinds.end(), kind);
  if (it == kinds.end() && kinds.size() > UINT8_MAX) return kUnknown;
  if (it == kinds.end()) it = kinds.insert(it, kind);
  return static_cast<uint8_t>(it - kinds.begin());
}

}  // namespace

FlameGraph Merge(const std::vector<FlameGraph>& graphs) {
  FlameGraph merged;
  Names names(merged.names), executables(merged.executables);
  merged.nodes.push_back({.name = names.Number("all")});
  std::map<std::tuple<int32_t, int32_t, int32_t, uint8_t>, int32_t> children;
  for (const FlameGraph& graph : graphs) {
    if (graph.nodes.empty()) continue;
    merged.from_ms = merged.from_ms == 0 ? graph.from_ms : std::min(merged.from_ms, graph.from_ms);
    merged.to_ms = std::max(merged.to_ms, graph.to_ms);
    merged.measure = graph.measure;
    merged.total += graph.total;
    merged.truncated_nodes += graph.truncated_nodes;
    std::vector<int32_t> moved(graph.nodes.size(), 0);
    std::vector<uint8_t> moved_kinds;
    for (const FrameKind& kind : graph.kinds) moved_kinds.push_back(KindIn(merged.kinds, kind));
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const FlameGraph::Node& node = graph.nodes[i];
      if (i > 0) {
        int32_t parent = moved[static_cast<size_t>(node.parent)];
        int32_t name = names.Number(graph.NameOf(node));
        int32_t executable = node.executable < 0 ? -1 : executables.Number(graph.ExecutableOf(node));
        const uint8_t kind = moved_kinds[node.kind];
        auto [it, added] =
            children.try_emplace({parent, name, executable, kind}, static_cast<int32_t>(merged.nodes.size()));
        if (added) merged.nodes.push_back({.parent = parent, .name = name, .executable = executable, .kind = kind});
        moved[i] = it->second;
      }
      FlameGraph::Node& target = merged.nodes[static_cast<size_t>(moved[i])];
      target.self += node.self;
      target.total += node.total;
    }
  }
  return merged;
}

std::vector<std::vector<int32_t>> SortedChildren(const FlameGraph& graph, Unit unit) {
  std::vector<std::vector<int32_t>> children(graph.nodes.size());
  for (size_t i = 1; i < graph.nodes.size(); ++i) {
    children[static_cast<size_t>(graph.nodes[i].parent)].push_back(static_cast<int32_t>(i));
  }
  for (auto& siblings : children) {
    std::sort(siblings.begin(), siblings.end(), [&](int32_t a, int32_t b) {
      const FlameGraph::Node &x = graph.nodes[static_cast<size_t>(a)], &y = graph.nodes[static_cast<size_t>(b)];
      if (x.total.Of(unit) != y.total.Of(unit)) return x.total.Of(unit) > y.total.Of(unit);
      return std::tie(graph.NameOf(x), a) < std::tie(graph.NameOf(y), b);
    });
  }
  return children;
}

std::vector<TopAnswer::Function> TopFunctions(const FlameGraph& graph, size_t limit) {
  std::map<std::tuple<int32_t, int32_t, uint8_t>, TopAnswer::Function> functions;
  for (size_t i = 1; i < graph.nodes.size(); ++i) {
    const FlameGraph::Node& node = graph.nodes[i];
    auto& function = functions[{node.name, node.executable, node.kind}];
    function.self += node.self;
    bool recursive = false;
    for (int32_t up = node.parent; up > 0; up = graph.nodes[static_cast<size_t>(up)].parent) {
      const FlameGraph::Node& caller = graph.nodes[static_cast<size_t>(up)];
      recursive |=
          std::tie(caller.name, caller.executable, caller.kind) == std::tie(node.name, node.executable, node.kind);
    }
    if (!recursive) function.total += node.total;
  }
  std::vector<TopAnswer::Function> sorted;
  for (auto& [key, function] : functions) {
    function.name = graph.names[static_cast<size_t>(std::get<0>(key))];
    if (std::get<1>(key) >= 0) function.executable = graph.executables[static_cast<size_t>(std::get<1>(key))];
    function.kind = std::get<2>(key);
    sorted.push_back(std::move(function));
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.self.ns != b.self.ns ? a.self.ns > b.self.ns : a.name < b.name;
  });
  if (sorted.size() > limit) sorted.resize(limit);
  return sorted;
}

}  // namespace tributary::cli
