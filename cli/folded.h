#pragma once

#include <string>

#include "cli/flame_graph.h"

namespace tributary::cli {

// Returns sorted lines "CALLER;…;LEAF VALUE", one for each call path with a self value. The root node `all` is left out
// of each line. `;` in a name becomes `:`, control characters and ill-formed UTF-8 become \xNN. If `kinds` is true,
// names of kernel frames end in `_[k]` and names of inlined frames in `_[i]`.
std::string WriteFolded(const FlameGraph& graph, Unit unit, bool kinds);

}  // namespace tributary::cli
