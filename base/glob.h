#pragma once

#include <string_view>

namespace tributary {

// Returns true if all of `text` matches `pattern`: `*` matches any bytes, `?` matches one byte, every other byte
// matches itself. Takes time proportional to the product of the lengths in the worst case.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace tributary
