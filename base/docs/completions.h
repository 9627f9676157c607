#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

// Writes completion scripts for bash, zsh and fish (bash_completion.cc, zsh_completion.cc, fish_completion.cc). The
// scripts complete commands, options, the values of options that allow only some values, files and directories. A
// script needs no program except its shell. A user can source it, or install it where the shell looks for completions:
//   bash  /usr/share/bash-completion/completions/NAME
//   zsh   /usr/share/zsh/vendor-completions/_NAME
//   fish  /usr/share/fish/vendor_completions.d/NAME.fish

namespace tributary::docs {

std::string BashCompletion(const Command& program);
std::string ZshCompletion(const Command& program);
std::string FishCompletion(const Command& program);

// Quotes `text` as 'text', so that bash and zsh take it literally.
std::string ShellQuoted(std::string_view text);

// Returns the name of a shell function: "_kernel_collector_completion".
std::string FunctionName(const Command& program);

// Returns all options that take a value, of the program and of its commands. The word after such an option is not a
// command.
std::vector<std::string> FlagsWithValues(const Command& program);

// Returns the words to offer where no value is expected: flags, and "--no-NAME" for switches that can be turned off.
std::vector<std::string> AllFlags(const Command& command);

}  // namespace tributary::docs
