#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace tributary::cli {

// Returns a formatter that makes --help look like that of the other programs (base/docs/help_text.h).
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

// Describes the error in the command line, in the words of base/options.h: "unknown option --limt; did you mean
// --limit?". `app` has just thrown `error`.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tributary::cli
