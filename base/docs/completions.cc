#include "base/docs/completions.h"

#include <algorithm>
#include <set>

namespace tributary::docs {

std::string ShellQuoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string FunctionName(const Command& program) {
  std::string out = "_" + program.name + "_completion";
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::vector<std::string> FlagsWithValues(const Command& program) {
  std::set<std::string> flags;
  for (const CommandPath& path : AllCommands(program)) {
    for (const Option& option : path.command->options) {
      if (!option.value_name.empty()) flags.insert(option.flags.begin(), option.flags.end());
    }
  }
  return {flags.begin(), flags.end()};
}

std::vector<std::string> AllFlags(const Command& command) {
  std::vector<std::string> flags;
  for (const Option& option : command.options) {
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
    if (option.is_negatable) flags.push_back(NegatedFlag(option));
  }
  return flags;
}

}  // namespace tributary::docs
