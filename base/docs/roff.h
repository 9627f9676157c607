#pragma once

#include <string>
#include <string_view>

namespace tributary::docs {

// Escapes `text` so that roff prints it literally inside a line: backslashes, quotes, dashes and non-ASCII characters,
// among others. A line break becomes a space.
std::string RoffText(std::string_view text);

// Escapes `text`, which must be a whole line, like RoffText. Also escapes a dot at its start, which roff would read as
// a request.
std::string RoffLine(std::string_view text);

}  // namespace tributary::docs
