#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// The receiver of OTLP over gRPC that -collection-agent names.
struct AgentAddress {
  std::string target;  // "host:port"
  bool tls = false;
};

// `address` is HOST:PORT, or a URL with http or https, which outrank `plain` (no TLS). Returns InvalidArgument for
// anything else, for port 0, and for a URL with a user or password: such a message must not be logged, so it does not
// contain the address.
absl::StatusOr<AgentAddress> ParseAgent(std::string_view address, bool plain);

// Returns the option of the reducer that sends profiles to this receiver: "--export otlp://HOST:PORT".
std::string ExportOption(const AgentAddress& address);

// Returns true if the endpoint contains a user or a password.
bool HasUser(std::string_view endpoint);

}  // namespace tributary
