#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tributary {

// Limit for a demangled name. A mangled name can refer to earlier parts of itself, so a few hundred bytes can expand to
// gigabytes. If the estimated length is above this limit, the name is not demangled. The estimate is never too low.
constexpr size_t kDemangledBytesMax = 1u << 20;

// Itanium C++ is in demangle_itanium.cc, Rust in demangle_rust.cc. Each function returns nullopt if the name is of
// another scheme, if it is malformed, or if the result would exceed the limit.
std::optional<std::string> DemangleItanium(std::string_view name);
std::optional<std::string> DemangleRustLegacy(std::string_view name);
std::optional<std::string> DemangleRustV0(std::string_view name);

}  // namespace tributary
