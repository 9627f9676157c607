#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tributary {

// In both schemes a name can refer back to its earlier parts, so a few hundred bytes can expand to gigabytes. A name
// stays mangled if its written form might be longer than this limit. The estimate is never too low.
constexpr size_t kDemangledBytesMax = 1u << 20;

// Itanium C++ is in demangle_itanium.cc, Rust in demangle_rust.cc.
// Each function returns nullopt if the name is not of its scheme, is malformed, or would exceed the limit.
std::optional<std::string> DemangleItanium(std::string_view name);
std::optional<std::string> DemangleRustLegacy(std::string_view name);
std::optional<std::string> DemangleRustV0(std::string_view name);

}  // namespace tributary
