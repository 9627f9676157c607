#pragma once

#include <string>
#include <string_view>

namespace tributary {

// Returns a linkage name in readable form: Itanium C++, Rust (v0, and legacy without its hash). Returns all other names
// unchanged, and names that cannot be demangled. The input may have any length, but names over 8 KiB are returned
// unchanged, because demanglers recurse. Thread: any.
std::string Demangle(std::string_view linkage_name);

}  // namespace tributary
