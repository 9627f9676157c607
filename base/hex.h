#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tributary {

// Returns lower-case digits, two per byte.
std::string ToHex(std::span<const uint8_t> bytes);
// Returns 0 to 15, or -1 if `c` is not a hexadecimal digit of either case.
int HexDigit(char c);
// Returns nullopt if the length is odd or another character occurs.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace tributary
