#include "kernel-collector/distribution/otlp_receiver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse.h"
#include "base/status.h"

namespace tributary {
namespace {

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_' || c == ':' || c == '[' || c == ']';
}

}  // namespace

absl::StatusOr<AgentAddress> ParseAgent(std::string_view endpoint, bool plain) {
  if (HasUser(endpoint)) {
    return Invalid("must not contain a user or a password: anyone can read the options of a process");
  }
  if (endpoint.find("://") != endpoint.npos) {
    return Invalid(
        "must be HOST:PORT and no URL, as for the profiler: it sends over gRPC, with TLS unless --disable-tls is "
        "given; to send over HTTP, use --intake-encoder otlp_profiles --intake-host http://HOST:PORT or https://…");
  }
  const auto address = ParseHostPort(endpoint);
  if (!address.ok() || address->port == 0 || endpoint.starts_with(':') ||
      !std::all_of(endpoint.begin(), endpoint.end(), IsHostByte)) {
    return Invalid("must be HOST:PORT, with the port of an OTLP receiver");
  }
  return AgentAddress{.target = FormatHostPort(*address), .tls = !plain};
}

std::string ExportOption(const AgentAddress& address) {
  return fmt::format("--export {}://{}", address.tls ? "otlps" : "otlp", address.target);
}

bool HasUser(std::string_view endpoint) { return endpoint.find('@') != std::string_view::npos; }

}  // namespace tributary
