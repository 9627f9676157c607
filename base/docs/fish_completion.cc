#include <fmt/format.h>

#include "base/docs/completions.h"

namespace tributary::docs {
namespace {

// In fish's single quotes, a backslash escapes a backslash and a quote.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string HelperName(const Command& program) { return "_" + FunctionName(program) + "_at"; }

// Adds a function that is true if the words so far lead to the command in its argument, for example "symbols push".
void AddHelper(const Command& program, std::string& out) {
  std::string commands;
  for (const CommandPath& path : AllCommands(program)) {
    if (!path.words.empty()) commands += " " + Quoted(Joined(path.words, " "));
  }
  out += fmt::format("function {}\n", HelperName(program));
  out +=
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  set -l command ''\n"
      "  set -l skip 0\n"
      "  for word in $words\n"
      "    if test $skip = 1\n"
      "      set skip 0\n"
      "      continue\n"
      "    end\n"
      "    switch $word\n";
  if (const auto flags = FlagsWithValues(program); !flags.empty()) {
    out += fmt::format("      case {}\n        set skip 1\n", Joined(flags, " "));
  }
  out +=
      "      case --\n"
      "        set command (string trim -- \"$command --\")\n"
      "        break\n"
      "      case '*'\n";
  out += fmt::format("        if contains -- (string trim -- \"$command $word\"){}\n", commands);
  out +=
      "          set command (string trim -- \"$command $word\")\n"
      "        end\n"
      "    end\n"
      "  end\n"
      "  test \"$command\" = \"$argv[1]\"\n"
      "end\n\n";
}

void AddOption(const Option& option, const std::string& begin, std::string& out) {
  std::string value;
  if (!option.value_name.empty()) {
    switch (KindOfValue(option)) {
      case ValueKind::kWords:
        value = " -x -a " + Quoted(Joined(option.values, " "));
        break;
      case ValueKind::kFile:
        value = " -r -F";
        break;
      case ValueKind::kDirectory:
        value = " -x -a '(__fish_complete_directories)'";
        break;
      case ValueKind::kNone:
        value = " -x";
        break;
    }
  }
  std::string names;
  for (const std::string& flag : option.flags) {
    names += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  }
  out += fmt::format("{}{}{} -d {}\n", begin, names, value, Quoted(option.help));
  if (option.is_negatable) {
    out += fmt::format("{} -l {} -d {}\n", begin, NegatedFlag(option).substr(2), Quoted("not: " + option.help));
  }
}

}  // namespace

std::string FishCompletion(const Command& program) {
  std::string out = fmt::format("# Completion of {} for fish; made by --print-docs fish.\n", program.name);
  AddHelper(program, out);
  out += fmt::format("complete -c {} -f\n", program.name);
  for (const CommandPath& path : AllCommands(program)) {
    auto at = [&](const std::string& words) {
      return fmt::format("complete -c {} -n {}", program.name,
                         Quoted(fmt::format("{} {}", HelperName(program), Quoted(words))));
    };
    const std::string begin = at(Joined(path.words, " "));
    for (const Command& child : path.command->commands) {
      out += fmt::format("{} -a {} -d {}\n", begin, child.name, Quoted(child.summary));
    }
    for (const Option& option : path.command->options) AddOption(option, begin, out);
    for (const Option& argument : path.command->arguments) {
      if (KindOfValue(argument) == ValueKind::kFile) out += begin + " -F\n";
    }
    if (path.command->runs_command) {
      out += at(Joined(path.words, " ") + " --") + " -a '(__fish_complete_command)'\n";
    }
  }
  return out;
}

}  // namespace tributary::docs
