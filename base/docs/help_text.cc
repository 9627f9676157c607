#include "base/docs/help_text.h"

#include <fmt/format.h>

namespace tributary::docs {

std::string HelpTitle(std::string_view name, std::string_view summary, std::string_view arguments) {
  return fmt::format("{} — {}\n\nUsage: {} {}\n\n", name, summary, name, arguments);
}

std::string HelpOption(const Option& option, std::string_view note) {
  std::string out = "  ";
  for (size_t i = 0; i < option.flags.size(); ++i) out += (i == 0 ? "" : ", ") + option.flags[i];
  if (!option.value_name.empty()) out += (option.flags.empty() ? "" : " ") + option.value_name;
  out += "\n      " + option.help;
  if (!option.default_text.empty()) out += fmt::format(" (default {})", option.default_text);
  for (size_t i = 0; i < option.environment.size(); ++i) {
    out += (i == 0 ? "\n      environment " : ", ") + option.environment[i];
  }
  return out.append(note).append("\n");
}

}  // namespace tributary::docs
