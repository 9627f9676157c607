#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// Returns the content of `file`, or `text` if `file` is "", without the spaces around it. For certificates, keys and
// tokens of an ApiAccess. Returns the errors of ReadWholeFile and ErrnoStatus (status.h).
absl::StatusOr<std::string> SecretText(const std::string& file, const std::string& text);

}  // namespace tributary
