#pragma once

#include <string>
#include <string_view>

namespace tributary {

// Returns a linkage name in readable form: Itanium C++, Rust (v0, and legacy without its hash). Returns any other name,
// and any name that does not demangle, unchanged. The input may have any length. Names over 8 KiB are not tried,
// because demanglers recurse. Thread: any.
std::string Demangle(std::string_view linkage_name);

}  // namespace tributary
