#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/parse.h"

namespace tributary::intake {

// The order in which a node prefers reducers, as indices: by rendezvous hashing (Thaler and Ravishankar 1998), so that
// nodes spread evenly, and a reducer that comes or goes moves only the nodes it must. The same for every process and
// release: XXH3-64 of node id, a zero byte and "host:port", highest first.
std::vector<size_t> PreferenceOf(std::string_view node_id, const std::vector<HostPort>& reducers);

}  // namespace tributary::intake
