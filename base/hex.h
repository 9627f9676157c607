#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tributary {

// Returns two lower-case hexadecimal digits per byte.
std::string ToHex(std::span<const uint8_t> bytes);
// Returns the value of the hexadecimal digit `c`, 0 to 15. Returns -1 if `c` is no such digit. Upper case is allowed.
int HexDigit(char c);
// Decodes hexadecimal digits. Returns nullopt if their number is odd, or if `hex` contains any other character.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace tributary
