#pragma once

#include <string_view>

namespace tributary {

constexpr std::string_view kVersion = TRIBUTARY_VERSION;

}  // namespace tributary
