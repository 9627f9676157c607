#include "base/docs/print_docs.h"

#include <fmt/format.h>

#include <ctime>

#include "base/docs/completions.h"
#include "base/docs/config_file.h"
#include "base/docs/man_page.h"
#include "base/number.h"
#include "base/status.h"

namespace tributary::docs {
namespace {

// The date of man pages without SOURCE_DATE_EPOCH: the day on which this version's manual was written. Packages set
// SOURCE_DATE_EPOCH.
constexpr std::string_view kManualDate = "2026-11-23";

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

absl::StatusOr<std::string> Date(const std::map<std::string, std::string>& environment) {
  const auto it = environment.find("SOURCE_DATE_EPOCH");
  if (it == environment.end() || it->second.empty()) return std::string(kManualDate);
  const std::optional<time_t> seconds = ParseNumber<time_t>(it->second);
  tm parts{};
  if (!seconds || gmtime_r(&*seconds, &parts) == nullptr) {
    return Invalid(
        "environment variable SOURCE_DATE_EPOCH: must be a number of seconds since 1970, or must not be set");
  }
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

}  // namespace

absl::StatusOr<std::string> Print(std::string_view format, std::string_view command, const Command& program,
                                  const Manual& manual, const std::map<std::string, std::string>& environment) {
  if (!command.empty() && format != "man") {
    return Invalid(
        fmt::format("--print-docs {} prints one document for all commands: leave out '{}'", format, command));
  }
  if (format == "man") {
    ASSIGN_OR_RETURN(const std::string date, Date(environment));
    if (command.empty()) return ManPage(program, manual, date);
    const Command* found = FindCommand(program, command);
    if (found == nullptr) {
      return Invalid(fmt::format("--print-docs man: there is no command '{}'; {} --help lists the commands", command,
                                 program.name));
    }
    return CommandManPage(program, *found, command, manual, date);
  }
  if (format == "bash") return BashCompletion(program);
  if (format == "zsh") return ZshCompletion(program);
  if (format == "fish") return FishCompletion(program);
  if (format == "yaml" && HasConfigFile(program)) return ConfigFile(program);
  if (format == "yaml") return Invalid(fmt::format("{} reads no configuration file", program.name));
  return Invalid(fmt::format("--print-docs: must be {}, not '{}'",
                             HasConfigFile(program) ? "man, bash, zsh, fish or yaml" : "man, bash, zsh or fish",
                             format));
}

}  // namespace tributary::docs
