#pragma once

#include <string>
#include <string_view>

namespace tributary::docs {

// `text` so that roff prints it as it is, anywhere in a line: backslashes, quotes, dashes and what is not ASCII are
// escaped. A line break becomes a space.
std::string RoffText(std::string_view text);

// The same for a whole line: one that begins with a dot is no request.
std::string RoffLine(std::string_view text);

}  // namespace tributary::docs
