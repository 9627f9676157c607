#pragma once

#include <string_view>
#include <vector>

namespace tributary {

// Returns the parts of "a,b,c" that are not empty. They point into `text`.
std::vector<std::string_view> CommaList(std::string_view text);

}  // namespace tributary
