#pragma once

#include <string>
#include <string_view>

namespace tributary {

// Returns the demangled form of a linkage name of Itanium C++ or Rust (v0 or legacy). For legacy Rust, the hash at the
// end is removed. Returns all other names unchanged, and names that cannot be demangled. Names above 8 KiB are returned
// unchanged, because demanglers are recursive. Any thread may call it.
std::string Demangle(std::string_view linkage_name);

}  // namespace tributary
