#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tributary {

// Both schemes refer back to what a name said before, so that a few hundred bytes can spell out gigabytes. A name whose
// written form might be longer than this, by an estimate that is never too low, stays mangled.
constexpr size_t kDemangledBytesMax = 1u << 20;

// Itanium C++ is in demangle_itanium.cc, Rust in demangle_rust.cc.
// Each: nullopt when the name is not of its scheme, is malformed, or would grow beyond the cap.
std::optional<std::string> DemangleItanium(std::string_view name);
std::optional<std::string> DemangleRustLegacy(std::string_view name);
std::optional<std::string> DemangleRustV0(std::string_view name);

}  // namespace tributary
