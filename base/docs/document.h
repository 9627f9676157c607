#pragma once

#include <string>
#include <string_view>
#include <vector>

// The inputs for a program's documents: the table of its options, and further texts of its manual. Man pages are
// generated from both. Completions and configuration files are generated from the table. So the documents always agree
// with the options of the program.

namespace tributary::docs {

// An option, or a positional argument.
struct Option {
  std::vector<std::string> flags;  // "--port", "-p": the main flag first; empty: an argument
  std::string value_name;          // "HZ"; for an argument its name; "": a switch
  std::string help;                // one line, lower case, no full stop
  std::string default_text;
  std::vector<std::string> values;       // the only allowed values; empty: any value
  std::vector<std::string> environment;  // environment variables that set the option
  std::string key;                       // in the configuration file; "": not in the file
  bool is_list = false;                  // may be repeated
  bool is_secret = false;                // its value is never written
  bool is_negatable = false;             // a switch that --no-NAME turns off
  bool is_required = false;              // for an argument
};

struct Command {
  std::string name;     // "kernel-collector", "push"
  std::string summary;  // one sentence
  std::vector<Option> options, arguments;
  std::vector<Command> commands;
  bool runs_command = false;  // the words after "--" are another program with its arguments
};

// Further texts of a program's manual. Paragraphs are plain text. The term of an Item ("SIGTERM",
// "/etc/tributary/reducer.yaml", "0") is shown in bold.
struct Manual {
  struct Item {
    std::string_view term, text;
  };
  struct Example {
    std::string_view text;  // describes the lines, ends with a colon
    std::string_view lines;
  };
  struct CommandText {
    std::string_view command;  // "symbols-push"
    std::vector<std::string_view> description;
    std::vector<Example> examples;
  };
  int section = 1;
  std::vector<std::string_view> description;
  std::vector<Item> environment;  // in addition to those of the options
  std::vector<Item> files;
  std::vector<Item> signals;
  std::vector<Item> exit_status;
  std::vector<Example> examples;
  std::vector<std::string_view> see_also;  // "reducer(8)"
  std::vector<CommandText> commands;
};

// What a shell completes for the value of an option or for an argument: nothing, one of the allowed values, a file, or
// a directory.
enum class ValueKind { kNone, kWords, kFile, kDirectory };
ValueKind KindOfValue(const Option& option);

// Returns "--NAME" for a switch that --no-NAME turns off, and otherwise "".
std::string NegatedFlag(const Option& option);

// Returns the command with this name: "symbols-push" or "symbols push". Returns nullptr if there is no such command.
const Command* FindCommand(const Command& program, std::string_view name);

// A command, and the words that a user types after the program's name for it: {"symbols", "push"}. For the program
// itself: {}.
struct CommandPath {
  std::vector<std::string> words;
  const Command* command;
};
// Returns the program and all commands below it: parents before children, in the table's order.
std::vector<CommandPath> AllCommands(const Command& program);

std::string Joined(const std::vector<std::string>& words, std::string_view separator);

}  // namespace tributary::docs
