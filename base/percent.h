#pragma once

#include <string>
#include <string_view>

// Percent-encoding (RFC 3986, 2.1) of URLs, and of attributes in the format of W3C baggage.

namespace tributary {

// Returns true for a letter, a digit, '-', '.', '_' or '~' (RFC 3986, 2.3): a URL may contain these bytes anywhere.
bool IsUrlUnreserved(char c);
// Like IsUrlUnreserved, or '/': for paths.
bool IsUrlPath(char c);

// Returns `text` with every byte that `is_plain` refuses replaced by '%' and two hexadecimal digits, A to F in
// capitals.
std::string PercentEncoded(std::string_view text, bool (*is_plain)(char) = IsUrlUnreserved);

// Returns `text` with each '%' and its two hexadecimal digits replaced by one byte. A '%' without two digits stays.
std::string PercentDecoded(std::string_view text);

}  // namespace tributary
