#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/parse.h"

namespace tributary::intake {

// Returns the indices of `reducers` in the order in which the node prefers them. The order comes from rendezvous
// hashing (Thaler and Ravishankar 1998): nodes spread evenly, and a reducer that is added or removed moves only the
// nodes it must. The order is the same for every process and release: XXH3-64 of node id, a zero byte and "host:port",
// highest first.
std::vector<size_t> PreferenceOf(std::string_view node_id, const std::vector<HostPort>& reducers);

}  // namespace tributary::intake
