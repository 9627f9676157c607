#pragma once

#include <string>
#include <vector>

#include "base/docs/document.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tributary::cli {

// Whether the arguments, without the program's name, ask for a document: `--print-docs FORMAT [COMMAND]`.
bool AsksForDocs(const std::vector<std::string>& arguments);

// Prints the document. Returns the exit code: bad arguments are one line on standard error.
int PrintDocs(const CLI::App& app, const std::vector<std::string>& arguments);

// The long names of an option, without "--"; not the one that turns a switch off.
std::vector<std::string> FlagNames(const CLI::Option& option);

// The commands and their options, as documents show them.
docs::Command Describe(const CLI::App& app);

}  // namespace tributary::cli
