#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

namespace tributary::docs {

// The layout of `--help` in every program: title and usage, then one paragraph per option.

// Returns "NAME — SUMMARY" and the usage line. `arguments` comes after the name: "[options] FILE".
std::string HelpTitle(std::string_view name, std::string_view summary, std::string_view arguments);

// Returns the option's flags, its help with the default, and its environment variables. `note` is appended to the last
// of these lines.
std::string HelpOption(const Option& option, std::string_view note = {});

}  // namespace tributary::docs
