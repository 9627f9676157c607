#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace tributary::cli {

// Returns a formatter that makes --help look like that of the other programs (base/docs/help_text.h).
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter();

// Returns the message for an error in the command line. The wording is that of base/options.h, for example: "unknown
// option --limt; did you mean --limit?". `error` is the exception that app.parse() threw.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tributary::cli
