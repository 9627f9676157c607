#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tributary {

// Lower case, two digits a byte.
std::string ToHex(std::span<const uint8_t> bytes);
// Returns 0 to 15, or -1 if `c` is no hexadecimal digit of either case.
int HexDigit(char c);
// nullopt for an odd length or another character.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace tributary
