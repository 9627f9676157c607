#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

namespace tributary::docs {

// The layout of `--help`, which is the same in all programs: title and usage, then one paragraph per option.

// Returns the line "NAME — SUMMARY" and the usage line. `arguments`, such as "[options] FILE", comes after the name in
// the usage line.
std::string HelpTitle(std::string_view name, std::string_view summary, std::string_view arguments);

// Returns the option's flags, its help with the default, and its environment variables. Appends `note` to the last
// line.
std::string HelpOption(const Option& option, std::string_view note = {});

}  // namespace tributary::docs
