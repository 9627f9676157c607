#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

namespace tributary::docs {

// What `--help` of every program looks like: its title and usage, then one paragraph an option.

// "NAME — SUMMARY", and how the program is called. `arguments` stands behind the name: "[options] FILE".
std::string HelpTitle(std::string_view name, std::string_view summary, std::string_view arguments);

// The option's flags, its help with the default, and its environment variables. `note` ends the last of these lines.
std::string HelpOption(const Option& option, std::string_view note = {});

}  // namespace tributary::docs
