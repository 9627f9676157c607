#pragma once

#include <string>

#include "cli/flame_graph.h"

namespace tributary::cli {

// Returns sorted lines "CALLER;…;LEAF VALUE", one for each call path with a self value. The root node `all` is left out
// of each line. `;` in a name becomes `:`, control characters and ill-formed UTF-8 become \xNN. If `kinds` is true, a
// name ends in the mark of the frame's kind, such as `_[k]` for kernel frames and `_[i]` for inlined frames.
std::string WriteFolded(const FlameGraph& graph, Unit unit, bool kinds);

}  // namespace tributary::cli
