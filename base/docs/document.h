#pragma once

#include <string>
#include <string_view>
#include <vector>

// What documents are made of: the options table of a program, and the texts of its manual that the table does not hold.
// Man pages, completions and configuration files are made of both, so that they cannot disagree with the program.

namespace tributary::docs {

// An option, or an argument without a name.
struct Option {
  std::vector<std::string> flags;  // "--port", "-p": the main one first; none: an argument
  std::string value_name;          // "HZ"; of an argument its name; "": a switch
  std::string help;                // one line, lower case, no full stop
  std::string default_text;
  std::vector<std::string> values;       // the only ones allowed; none: any
  std::vector<std::string> environment;  // variables that set it
  std::string key;                       // in the configuration file; "": not there
  bool is_list = false;                  // may be repeated
  bool is_secret = false;                // its value is never written
  bool is_negatable = false;             // a switch that --no-NAME turns off
  bool is_required = false;              // of an argument
};

struct Command {
  std::string name;     // "kernel-collector", "push"
  std::string summary;  // one sentence
  std::vector<Option> options, arguments;
  std::vector<Command> commands;
  bool runs_command = false;  // what stands behind "--" is another program with its arguments
};

// Paragraphs are plain text. Terms are shown in bold: "SIGTERM", "/etc/tributary/reducer.yaml", "0".
struct Manual {
  struct Item {
    std::string_view term, text;
  };
  struct Example {
    std::string_view text;  // what the lines do, with a colon at its end
    std::string_view lines;
  };
  struct CommandText {
    std::string_view command;  // "symbols-push"
    std::vector<std::string_view> description;
    std::vector<Example> examples;
  };
  int section = 1;
  std::vector<std::string_view> description;
  std::vector<Item> environment;  // beside those of the options
  std::vector<Item> files;
  std::vector<Item> signals;
  std::vector<Item> exit_status;
  std::vector<Example> examples;
  std::vector<std::string_view> see_also;  // "reducer(8)"
  std::vector<CommandText> commands;
};

// What a shell offers where the option's value or the argument stands.
enum class ValueKind { kNone, kWords, kFile, kDirectory };
ValueKind KindOfValue(const Option& option);

// "--NAME" for each switch that --no-NAME turns off, else "".
std::string NegatedFlag(const Option& option);

// The command that `name` stands for: "symbols-push" or "symbols push"; nullptr: there is none.
const Command* FindCommand(const Command& program, std::string_view name);

// A command and the words that lead to it: {} for the program itself, {"symbols", "push"}.
struct CommandPath {
  std::vector<std::string> words;
  const Command* command;
};
// The program, and all commands below it: parents before children, in the table's order.
std::vector<CommandPath> AllCommands(const Command& program);

std::string Joined(const std::vector<std::string>& words, std::string_view separator);

}  // namespace tributary::docs
