#include "base/glob.h"

namespace tributary {

bool GlobMatches(std::string_view pattern, std::string_view text) {
  // Only the last star can take more bytes. The bytes that earlier stars took can stay as they are.
  size_t at = 0, in_pattern = 0, after_star = std::string_view::npos, star_text = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      after_star = ++in_pattern;
      star_text = at;
    } else if (in_pattern < pattern.size() && (pattern[in_pattern] == '?' || pattern[in_pattern] == text[at])) {
      ++in_pattern;
      ++at;
    } else if (after_star != std::string_view::npos) {
      in_pattern = after_star;
      at = ++star_text;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

}  // namespace tributary
