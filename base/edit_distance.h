#pragma once

#include <cstddef>
#include <string_view>

namespace tributary {

// Levenshtein distance: how far a mistyped name is from a real one. |a| × |b| steps: callers cut what comes from
// outside.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace tributary
