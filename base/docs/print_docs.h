#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/docs/document.h"

namespace tributary::docs {

// The formats of `--print-docs FORMAT`.
constexpr std::string_view kFormats[] = {"man", "bash", "zsh", "fish", "yaml"};

// Returns the document of a program. `command` is "", or the name of a command for its man page. If `environment`
// contains SOURCE_DATE_EPOCH (seconds since 1970), its day is the date of the man page. Returns InvalidArgument if the
// format or the command does not exist, if the program has no document of this format, if `command` is given for a
// format other than man, or if SOURCE_DATE_EPOCH is not a number.
absl::StatusOr<std::string> Print(std::string_view format, std::string_view command, const Command& program,
                                  const Manual& manual, const std::map<std::string, std::string>& environment);

}  // namespace tributary::docs
