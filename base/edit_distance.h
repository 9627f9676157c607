#pragma once

#include <cstddef>
#include <string_view>

namespace tributary {

// Returns the Levenshtein distance, for example of a mistyped name from a real one. Takes |a| × |b| steps: the caller
// must limit the length of untrusted input.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace tributary
