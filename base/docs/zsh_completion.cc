#include <fmt/format.h>

#include "base/docs/completions.h"

namespace tributary::docs {
namespace {

// Escapes text inside a specification of _arguments or _describe, where brackets, colons and backslashes have a
// meaning.
std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string Action(const Option& option) {
  switch (KindOfValue(option)) {
    case ValueKind::kWords:
      return "(" + Joined(option.values, " ") + ")";
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_files -/";
    case ValueKind::kNone:
      break;
  }
  return " ";  // a free value: only its name is shown
}

void AddOption(const Option& option, std::vector<std::string>& specs) {
  for (const std::string& flag : option.flags) {
    std::string spec = option.is_list ? "*" : "";
    if (option.value_name.empty()) {
      specs.push_back(fmt::format("{}{}[{}]", spec, flag, Escaped(option.help)));
    } else {
      specs.push_back(fmt::format("{}{}{}[{}]:{}:{}", spec, flag, flag.starts_with("--") ? "=" : "",
                                  Escaped(option.help), Escaped(option.value_name), Action(option)));
    }
  }
  if (option.is_negatable) {
    specs.push_back(fmt::format("{}[not\\: {}]", NegatedFlag(option), Escaped(option.help)));
  }
}

// Adds a function for each command: _tributary_completion, _tributary_completion-symbols, …
void AddFunction(const Command& program, const CommandPath& path, std::string& out) {
  std::string function = FunctionName(program);
  for (const std::string& word : path.words) function += "-" + word;
  const Command& command = *path.command;
  std::vector<std::string> specs;
  for (const Option& option : command.options) AddOption(option, specs);
  for (const Option& argument : command.arguments) {
    specs.push_back(
        fmt::format("{}:{}:{}", argument.is_list ? "*" : "", Escaped(argument.value_name), Action(argument)));
  }
  if (command.runs_command) specs.push_back("*:::command:_normal");
  if (!command.commands.empty()) {
    specs.push_back("1:command:->command");
    specs.push_back("*::argument:->argument");
  }
  out += fmt::format("{}() {{\n  local context state state_descr line result=1\n  typeset -A opt_args\n", function);
  out += "  _arguments -S -C";
  for (const std::string& spec : specs) out += " \\\n    " + ShellQuoted(spec);
  out += " && result=0\n";
  if (!command.commands.empty()) {
    out += "  case $state in\n    command)\n      local -a commands=(\n";
    for (const Command& child : command.commands) {
      out += fmt::format("        {}\n", ShellQuoted(fmt::format("{}:{}", child.name, Escaped(child.summary))));
    }
    out += "      )\n      _describe -t commands command commands && result=0 ;;\n    argument)\n";
    out += fmt::format("      (( $+functions[{0}-$words[1]] )) && {0}-$words[1] && result=0 ;;\n  esac\n", function);
  }
  out += "  return result\n}\n\n";
}

}  // namespace

std::string ZshCompletion(const Command& program) {
  std::string out =
      fmt::format("#compdef {}\n# Completion of {} for zsh; made by --print-docs zsh.\n\n", program.name, program.name);
  for (const CommandPath& path : AllCommands(program)) AddFunction(program, path, out);
  // If the shell's completion system loads the file, the file itself is the function. If the file is sourced, it
  // registers the function.
  const std::string function = FunctionName(program);
  return out + fmt::format("if [[ $funcstack[1] == _{1} ]]; then\n  {0} \"$@\"\nelse\n  compdef {0} {1}\nfi\n",
                           function, program.name);
}

}  // namespace tributary::docs
