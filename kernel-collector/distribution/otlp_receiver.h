#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// Returns the option of the reducer that sends profiles to an OTLP receiver: "--export otlp://HOST:PORT". `endpoint` is
// HOST:PORT, or a URL with http or https, which outrank `plain` (no TLS). Returns InvalidArgument for anything else,
// for port 0, and for a URL with a user or password: such a message must not be logged, so it does not contain the
// endpoint.
absl::StatusOr<std::string> ExportOption(std::string_view endpoint, bool plain);

// Returns true if the endpoint contains a user or a password.
bool HasUser(std::string_view endpoint);

}  // namespace tributary
