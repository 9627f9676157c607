#pragma once

#include <algorithm>
#include <string_view>

// Trims text. The caller chooses the bytes to remove, because each format has its own set of blanks.
// absl::StripAsciiWhitespace always removes the same set, and does not take the std::string_view that this project
// uses.

namespace tributary {

// The bytes that isspace() accepts in the C locale.
inline constexpr std::string_view kAsciiBlanks = " \t\n\v\f\r";
// Optional whitespace of HTTP headers (RFC 9110, 5.6.3) and of W3C baggage.
inline constexpr std::string_view kHttpBlanks = " \t";

// Returns `text` without the bytes at its end that are in `blanks`.
inline std::string_view TrimEnd(std::string_view text, std::string_view blanks) {
  return text.substr(0, text.find_last_not_of(blanks) + 1);  // npos + 1 is 0
}

// Returns `text` without the bytes at its start and end that are in `blanks`.
inline std::string_view Trim(std::string_view text, std::string_view blanks) {
  text = TrimEnd(text, blanks);
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text;
}

}  // namespace tributary
