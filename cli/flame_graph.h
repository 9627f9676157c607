#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/api.h"

namespace tributary::cli {

// A tree of frames. Each frame has a self value and a total value. Node 0 is the root. A parent comes before its
// children in `nodes`.
struct FlameGraph {
  struct Node {
    int32_t parent = -1;
    int32_t name = 0;         // index into names
    int32_t executable = -1;  // index into executables, -1: none
    uint8_t kind = kRoot;     // index into kinds
    Values self, total;
  };
  int64_t from_ms = 0, to_ms = 0;
  Measure measure;
  Values total;
  uint64_t truncated_nodes = 0;
  std::vector<std::string> names, executables;
  std::vector<FrameKind> kinds = KnownKinds();
  bool has_languages = false;  // of the kinds; for CheckFrameOptions
  std::vector<Node> nodes;

  const FrameKind& KindOf(const Node& node) const { return kinds[node.kind]; }
  const std::string& NameOf(const Node& node) const { return names[static_cast<size_t>(node.name)]; }
  std::string ExecutableOf(const Node& node) const {
    return node.executable < 0 ? "" : executables[static_cast<size_t>(node.executable)];
  }
};

// Adds up flame graphs: nodes with the same path of (name, executable, kind) become one node. Use it to combine the
// answers to several queries whose series do not overlap.
FlameGraph Merge(const std::vector<FlameGraph>& graphs);

// Returns the children of each node, the largest total in `unit` first. Nodes with equal totals are sorted by name, so
// that every picture of the same data has the same order.
std::vector<std::vector<int32_t>> SortedChildren(const FlameGraph& graph, Unit unit);

// Returns at most `limit` functions, the largest self value first. If a function calls itself, its `total` counts each
// call path only once.
std::vector<TopAnswer::Function> TopFunctions(const FlameGraph& graph, size_t limit);

}  // namespace tributary::cli
