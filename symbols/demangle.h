#pragma once

#include <string>
#include <string_view>

namespace tributary {

// A linkage name as people write it: Itanium C++, Rust (v0, and legacy without its hash). Anything else, and anything
// that does not demangle, comes back unchanged. Input of any length; names over 8 KiB are not tried (demanglers
// recurse). Any thread.
std::string Demangle(std::string_view linkage_name);

}  // namespace tributary
