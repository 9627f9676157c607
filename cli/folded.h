#pragma once

#include <string>

#include "cli/flame_graph.h"

namespace tributary::cli {

// Writes "root;…;leaf VALUE" lines, sorted, one for each path with a self value. The lines leave out the node `all`.
// `;` in a name becomes `:`, control and ill-formed bytes become \xNN. With `kinds`, kernel frames end in `_[k]` and
// inlined frames in `_[i]`.
std::string WriteFolded(const FlameGraph& graph, Unit unit, bool kinds);

}  // namespace tributary::cli
