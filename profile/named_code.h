#pragma once

#include <cstdint>
#include <vector>

#include "profile/definitions.h"

namespace tributary {

// Returns, for each executable of `definitions`, true if it is only the name of a place: frames without an address
// refer to it, and neither other frames nor processes do. An example is the source file of a Python function. Such an
// executable has no symbol table. `first`: the id of the first executable in `definitions`.
std::vector<bool> FindNamedCode(const Definitions& definitions, uint32_t first);

}  // namespace tributary
