#pragma once

#include <string_view>

namespace tributary {

// Returns true if all of `text` matches `pattern`: `*` matches any bytes, `?` matches one byte, every other byte
// matches itself. In the worst case, the time is proportional to the product of both lengths.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace tributary
