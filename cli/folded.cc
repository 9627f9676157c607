#include "cli/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.h"

namespace tributary::cli {
namespace {

std::string FrameText(const FlameGraph& graph, const FlameGraph::Node& node, bool kinds) {
  std::string text = EscapeForDisplay(graph.NameOf(node));
  std::replace(text.begin(), text.end(), ';', ':');
  if (text.empty()) text = "[unnamed]";
  if (kinds) text += graph.KindOf(node).mark;
  return text;
}

}  // namespace

std::string WriteFolded(const FlameGraph& graph, Unit unit, bool kinds) {
  std::map<std::string, uint64_t> lines;  // two nodes may have the same text: from two executables, or after escaping
  std::vector<std::string> path;
  for (const FlameGraph::Node& leaf : graph.nodes) {
    uint64_t value = leaf.self.Of(unit);
    if (value == 0 || leaf.parent < 0) continue;
    path.clear();
    for (const FlameGraph::Node* node = &leaf; node->parent >= 0;
         node = &graph.nodes[static_cast<size_t>(node->parent)]) {
      path.push_back(FrameText(graph, *node, kinds));
    }
    std::reverse(path.begin(), path.end());
    lines[fmt::format("{}", fmt::join(path, ";"))] += value;
  }
  std::string out;
  for (const auto& [stack, value] : lines) out += fmt::format("{} {}\n", stack, value);
  return out;
}

}  // namespace tributary::cli
