#include "base/docs/document.h"

#include <algorithm>

namespace tributary::docs {
namespace {

void Collect(const Command& command, const std::vector<std::string>& words, std::vector<CommandPath>& out) {
  out.push_back({words, &command});
  for (const Command& child : command.commands) {
    std::vector<std::string> child_words = words;
    child_words.push_back(child.name);
    Collect(child, child_words, out);
  }
}

}  // namespace

ValueKind KindOfValue(const Option& option) {
  if (!option.values.empty()) return ValueKind::kWords;
  if (option.value_name == "FILE" || option.value_name == "PATH") return ValueKind::kFile;
  return option.value_name == "DIR" ? ValueKind::kDirectory : ValueKind::kNone;
}

std::string NegatedFlag(const Option& option) {
  return option.is_negatable ? "--no-" + option.flags[0].substr(2) : std::string();
}

std::vector<CommandPath> AllCommands(const Command& program) {
  std::vector<CommandPath> out;
  Collect(program, {}, out);
  return out;
}

const Command* FindCommand(const Command& program, std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), ' ', '-');
  for (const CommandPath& path : AllCommands(program)) {
    if (!path.words.empty() && Joined(path.words, "-") == wanted) return path.command;
  }
  return nullptr;
}

std::string Joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

}  // namespace tributary::docs
