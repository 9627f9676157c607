#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/docs/document.h"

namespace tributary::docs {

// The formats of `--print-docs FORMAT`.
constexpr std::string_view kFormats[] = {"man", "bash", "zsh", "fish", "yaml"};

// Returns the document of a program. `command` is "", or the name of a command with a man page of its own. If
// `environment` contains SOURCE_DATE_EPOCH, it is the date of the man page. Returns InvalidArgument if the format or
// the command does not exist.
absl::StatusOr<std::string> Print(std::string_view format, std::string_view command, const Command& program,
                                  const Manual& manual, const std::map<std::string, std::string>& environment);

}  // namespace tributary::docs
