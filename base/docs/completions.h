#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

// Completion scripts, each in a file of its own (bash_completion.cc, zsh_completion.cc, fish_completion.cc): commands,
// options, the values of those that allow only some, files and directories. Each needs nothing but its shell, and may
// be sourced, or stand where the shell looks for it:
//   bash  /usr/share/bash-completion/completions/NAME
//   zsh   /usr/share/zsh/vendor-completions/_NAME
//   fish  /usr/share/fish/vendor_completions.d/NAME.fish

namespace tributary::docs {

std::string BashCompletion(const Command& program);
std::string ZshCompletion(const Command& program);
std::string FishCompletion(const Command& program);

// 'text', so that bash and zsh take it as it is.
std::string ShellQuoted(std::string_view text);

// Name of a shell function: "_kernel_collector_completion".
std::string FunctionName(const Command& program);

// All options that take a value, of the program and of its commands: the word behind one is no command.
std::vector<std::string> FlagsWithValues(const Command& program);

// What is offered where no value is due: flags, and "--no-NAME" of switches that can be turned off.
std::vector<std::string> AllFlags(const Command& command);

}  // namespace tributary::docs
