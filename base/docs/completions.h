#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

// Writes completion scripts for bash, zsh and fish (bash_completion.cc, zsh_completion.cc, fish_completion.cc). The
// scripts complete commands, options, files, directories, and the values of options that have a list of allowed values.
// A script runs no programs except its shell. Users can source a script, or install it under the path where the shell
// looks for it:
//   bash  /usr/share/bash-completion/completions/NAME
//   zsh   /usr/share/zsh/vendor-completions/_NAME
//   fish  /usr/share/fish/vendor_completions.d/NAME.fish

namespace tributary::docs {

std::string BashCompletion(const Command& program);
std::string ZshCompletion(const Command& program);
std::string FishCompletion(const Command& program);

// Quotes `text` as 'text', so that bash and zsh do not interpret its characters.
std::string ShellQuoted(std::string_view text);

// Returns the name of the script's shell function: "_kernel_collector_completion".
std::string FunctionName(const Command& program);

// Returns the flags of all options with a value, of the program and of its commands. The word after such a flag is not
// a command.
std::vector<std::string> FlagsWithValues(const Command& program);

// Returns all flags of a command, including "--no-NAME" for switches that can be turned off.
std::vector<std::string> AllFlags(const Command& command);

}  // namespace tributary::docs
