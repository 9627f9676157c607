#pragma once

#include <string>
#include <vector>

#include "base/docs/document.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tributary::cli {

// Returns whether the arguments, without the program's name, request a document: `--print-docs FORMAT [COMMAND]`.
bool AsksForDocs(const std::vector<std::string>& arguments);

// Prints the document. Returns the exit code; for bad arguments, prints one line to standard error.
int PrintDocs(const CLI::App& app, const std::vector<std::string>& arguments);

// Returns the long names of an option, without "--" and without the name that turns a switch off.
std::vector<std::string> FlagNames(const CLI::Option& option);

// Returns the commands and their options in the form of the documents.
docs::Command Describe(const CLI::App& app);

}  // namespace tributary::cli
