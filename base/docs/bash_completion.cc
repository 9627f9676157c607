#include <fmt/format.h>

#include "base/docs/completions.h"

namespace tributary::docs {
namespace {

// Returns the pattern of a case for the current command and one more word: 'top --type'.
std::string Pattern(const CommandPath& path, std::string_view word) {
  return ShellQuoted(path.words.empty() ? std::string(word) : fmt::format("{} {}", Joined(path.words, " "), word));
}

// Sets `command` to the words that lead to the command, for example "symbols push". The words after "--" belong to
// another program.
void AddCommandSearch(const Command& program, std::string& out) {
  std::string commands;
  for (const CommandPath& path : AllCommands(program)) {
    if (!path.words.empty()) commands += (commands.empty() ? "" : " | ") + ShellQuoted(Joined(path.words, " "));
  }
  out += "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${COMP_WORDS[i]} in\n";
  if (const auto flags = FlagsWithValues(program); !flags.empty()) {
    out += fmt::format("      {})\n", Joined(flags, " | "));
    out += "        [[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))\n        ((i++)) ;;\n";
  }
  out += "      --)\n        command+=${command:+ }--\n        break ;;\n";
  if (!commands.empty()) {
    out += "      *)\n        case ${command:+$command }${COMP_WORDS[i]} in\n";
    out += fmt::format("          {}) command+=${{command:+ }}${{COMP_WORDS[i]}} ;;\n        esac ;;\n", commands);
  }
  out += "    esac\n  done\n";
}

// Completes the option's value if the previous word takes a value.
void AddValues(const Command& program, std::string& out) {
  out += "  case ${command:+$command }$before in\n";
  for (const CommandPath& path : AllCommands(program)) {
    for (const Option& option : path.command->options) {
      if (option.value_name.empty()) continue;
      std::string patterns;
      for (const std::string& flag : option.flags) patterns += (patterns.empty() ? "" : " | ") + Pattern(path, flag);
      out += fmt::format("    {})\n", patterns);
      const ValueKind kind = KindOfValue(option);
      if (kind == ValueKind::kWords) {
        out += fmt::format("      mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\")\n",
                           ShellQuoted(Joined(option.values, " ")));
      } else if (kind != ValueKind::kNone) {
        out += "      compopt -o filenames 2>/dev/null\n";
        out += fmt::format("      mapfile -t COMPREPLY < <(compgen -{} -- \"$word\")\n",
                           kind == ValueKind::kFile ? 'f' : 'd');
      }
      out += "      return ;;\n";
    }
  }
  out += "  esac\n";
}

// Otherwise completes commands and options, and files if an argument is a file.
void AddWords(const Command& program, std::string& out) {
  out += "  case $command in\n";
  for (const CommandPath& path : AllCommands(program)) {
    std::vector<std::string> words;
    for (const Command& child : path.command->commands) words.push_back(child.name);
    for (std::string& flag : AllFlags(*path.command)) words.push_back(std::move(flag));
    out += fmt::format("    {}) words={}", ShellQuoted(Joined(path.words, " ")), ShellQuoted(Joined(words, " ")));
    for (const Option& argument : path.command->arguments) {
      if (KindOfValue(argument) == ValueKind::kFile) out += " files=1";
    }
    out += " ;;\n";
    if (path.command->runs_command) {
      out += fmt::format("    {}) mapfile -t COMPREPLY < <(compgen -c -f -- \"$word\") ;;\n", Pattern(path, "--"));
    }
  }
  out +=
      "  esac\n"
      "  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  if [[ -n $files && $word != -* ]]; then\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n";
}

}  // namespace

std::string BashCompletion(const Command& program) {
  const std::string function = FunctionName(program);
  std::string out =
      fmt::format("# Completion of {} for bash; made by --print-docs bash.\n{}() {{\n", program.name, function);
  // bash splits "--option=value" into three words.
  out +=
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= words= files= i\n"
      "  if [[ $word == = ]]; then\n"
      "    word=\n"
      "  elif [[ $before == = ]]; then\n"
      "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  COMPREPLY=()\n";
  AddCommandSearch(program, out);
  AddValues(program, out);
  AddWords(program, out);
  return out + fmt::format("}}\ncomplete -F {} {}\n", function, program.name);
}

}  // namespace tributary::docs
