#pragma once

#include <string>
#include <string_view>

// Percent-encoding (RFC 3986, 2.1), of URLs and of attributes as W3C baggage writes them.

namespace tributary {

// A letter, a digit, '-', '.', '_' or '~' (RFC 3986, 2.3): a URL may have these bytes anywhere.
bool IsUrlUnreserved(char c);
// As IsUrlUnreserved, or '/': for paths.
bool IsUrlPath(char c);

// Returns `text` with every byte that `is_plain` refuses as '%' and two digits, A to F in capitals.
std::string PercentEncoded(std::string_view text, bool (*is_plain)(char) = IsUrlUnreserved);

// Returns `text` with each '%' and the two hexadecimal digits behind it as one byte. A '%' without two digits stays.
std::string PercentDecoded(std::string_view text);

}  // namespace tributary
