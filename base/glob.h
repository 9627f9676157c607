#pragma once

#include <string_view>

namespace tributary {

// Whether `text` is what `pattern` says, whole: `*` stands for any bytes, `?` for one, all others for themselves. Takes
// time in proportion to the product of the lengths at worst.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace tributary
