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

// `address` is HOST:PORT. `plain`: without TLS. Returns InvalidArgument for anything else, for port 0, and for an
// address with a user or password. The message does not contain the address, because a password must not be logged. The
// profiler does not connect to a URL either ("too many colons in address").
absl::StatusOr<AgentAddress> ParseAgent(std::string_view address, bool plain);

// Returns the option of the reducer that sends profiles to this receiver: "--export otlp://HOST:PORT".
std::string ExportOption(const AgentAddress& address);

// Returns true if the endpoint contains a user or a password.
bool HasUser(std::string_view endpoint);

}  // namespace tributary
