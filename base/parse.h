#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Parsers for option values: addresses, durations and sizes.

namespace tributary {

// Parsed from "host:port", "[::1]:port" or ":port" (which means 0.0.0.0: all IPv4 addresses).
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);
std::string FormatHostPort(const HostPort& address);  // "[::1]:4040"; ParseHostPort can read it
// Parses an address to listen on, like ParseHostPort. Also accepts a port alone: "8000" means 127.0.0.1:8000.
absl::StatusOr<HostPort> ParseListen(std::string_view text);
// Parses a duration ("90s", "5m", "24h", "7d", "250ms"). Returns nanoseconds.
absl::StatusOr<int64_t> ParseDurationNs(std::string_view text);
// Parses a size ("64MiB", "10GB", "1048576"). Returns bytes.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);

}  // namespace tributary
