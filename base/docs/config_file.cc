#include "base/docs/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tributary::docs {
namespace {

constexpr size_t kLineBytesMax = 100;

void AddComment(std::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t end = text.size();
    if (end > kLineBytesMax) {
      end = text.rfind(' ', kLineBytesMax);
      if (end == text.npos) end = std::min(text.find(' '), text.size());
    }
    out += fmt::format("# {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string Value(const Option& option) {
  if (option.is_list) return "[]";
  const std::string text = option.is_secret ? std::string() : option.default_text;
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '/' || c == '_';
  });
  if (plain) return text;
  YAML::Emitter out;
  out << YAML::DoubleQuoted << text;
  return out.c_str();
}

}  // namespace

bool HasConfigFile(const Command& program) {
  return std::any_of(program.options.begin(), program.options.end(), [](const Option& o) { return !o.key.empty(); });
}

std::string ConfigFile(const Command& program) {
  std::string out;
  AddComment(fmt::format("Configuration of {}, read with --config FILE.", program.name), out);
  AddComment(
      "Each option is listed with its default value. To change an option, remove the # at the start of its line and "
      "write another value.",
      out);
  AddComment("A flag overrides an environment variable, which overrides this file.", out);
  for (const Option& option : program.options) {
    if (option.key.empty()) continue;
    out += '\n';
    AddComment(option.help, out);
    out += fmt::format("#{}: {}\n", option.key, Value(option));
  }
  return out;
}

}  // namespace tributary::docs
