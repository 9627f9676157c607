#pragma once

#include <string_view>

namespace tributary {

// `tributary check` runs the reducer's program with this argument, because only the reducer knows the formats of its
// files.
constexpr std::string_view kDataCheckArgument = "--check-data-dir";

// Arguments: DIR, SYMBOLS-DIR ("": symbols/ in DIR), "text" or "json". Checks a data directory and changes nothing in
// it. Prints one line per finding. Returns the exit status: 0 if nothing is damaged, 1 if something is, 2 if the
// directory could not be checked.
int RunDataCheck(int argc, const char* const* argv);

}  // namespace tributary
