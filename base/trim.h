#pragma once

#include <algorithm>
#include <string_view>

// Trims text. The caller chooses the bytes to remove, because each format has its own set of blanks.
// absl::StripAsciiWhitespace has only one set, and the string_view of Debian's Abseil is not std::string_view.

namespace tributary {

// The bytes that isspace() accepts in the C locale.
inline constexpr std::string_view kAsciiBlanks = " \t\n\v\f\r";
// Optional whitespace of HTTP headers (RFC 9110, 5.6.3) and of W3C baggage.
inline constexpr std::string_view kHttpBlanks = " \t";

// Returns `text` without the bytes of `blanks` at its end.
inline std::string_view TrimEnd(std::string_view text, std::string_view blanks) {
  return text.substr(0, text.find_last_not_of(blanks) + 1);  // npos + 1 is 0
}

// Returns `text` without the bytes of `blanks` at both ends.
inline std::string_view Trim(std::string_view text, std::string_view blanks) {
  text = TrimEnd(text, blanks);
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text;
}

}  // namespace tributary
