#pragma once

#include <string>

#include "cli/flame_graph.h"

namespace tributary::cli {

// "root;…;leaf VALUE" lines, sorted, one a path with a value of its own; the node `all` is not part of them. `;` in a
// name becomes `:`, control and ill-formed bytes \xNN. With `kinds`, kernel frames end in `_[k]` and inlined ones in
// `_[i]`.
std::string WriteFolded(const FlameGraph& graph, Unit unit, bool kinds);

}  // namespace tributary::cli
