#pragma once

#include <cstddef>
#include <string_view>

namespace tributary {

// Returns the Levenshtein distance of `a` and `b`, for example of a misspelt name and a known name. The time is
// proportional to a.size() × b.size(), so the caller must limit the length of untrusted input.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace tributary
