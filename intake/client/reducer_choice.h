#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/parse.h"

namespace tributary::intake {

// Returns the indices of `reducers` in the order in which the node prefers them. The order comes from rendezvous
// hashing (Thaler and Ravishankar 1998). Nodes are distributed evenly over the reducers. If a reducer is removed, only
// its own nodes move to other reducers. If a reducer is added, only the nodes that prefer it move to it. The order must
// never change between releases: highest XXH3-64 of node id, a zero byte and "host:port" first.
std::vector<size_t> PreferenceOf(std::string_view node_id, const std::vector<HostPort>& reducers);

}  // namespace tributary::intake
