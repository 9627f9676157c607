#pragma once

#include <string>
#include <string_view>

// Percent-encoding (RFC 3986, 2.1) of URLs, and of attributes in the format of W3C baggage.

namespace tributary {

// Returns true for letters, digits, '-', '.', '_' and '~' (RFC 3986, 2.3). These bytes need no encoding in any part of
// a URL.
bool IsUrlUnreserved(char c);
// Returns true for the bytes that need no encoding in a path of a URL: those of IsUrlUnreserved, and '/'.
bool IsUrlPath(char c);

// Encodes each byte for which `is_plain` returns false as '%' and two hexadecimal digits (with A to F, not a to f).
std::string PercentEncoded(std::string_view text, bool (*is_plain)(char) = IsUrlUnreserved);

// Replaces each '%' and the two hexadecimal digits after it by the byte that they encode. A '%' without two hexadecimal
// digits after it stays.
std::string PercentDecoded(std::string_view text);

}  // namespace tributary
