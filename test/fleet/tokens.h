#pragma once

#include <string>

namespace tributary {

// Returns the token that a node sends. fleet.py writes the same tokens into a file for the reducer. A reducer without
// such a file ignores them.
inline std::string TokenOf(const std::string& node_id) { return "token-of-" + node_id; }

}  // namespace tributary
