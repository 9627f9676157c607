#pragma once

#include <string>
#include <vector>

#include "base/docs/document.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tributary::cli {

// Returns true if the arguments request a document: `--print-docs FORMAT [COMMAND]`. `arguments` is without the
// program's name.
bool AsksForDocs(const std::vector<std::string>& arguments);

// Prints the document. If the arguments are wrong, prints one line to standard error instead. Returns the exit code.
int PrintDocs(const CLI::App& app, const std::vector<std::string>& arguments);

// Returns the long names of an option, without "--". The long name that turns a switch off is left out.
std::vector<std::string> FlagNames(const CLI::Option& option);

// Describes the commands of `app` and their options as base/docs needs them for man pages and --help.
docs::Command Describe(const CLI::App& app);

}  // namespace tributary::cli
