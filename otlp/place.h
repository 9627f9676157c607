#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary::otlp {

// Where a receiver is, as its URL says behind the "://".
struct Place {
  std::string target;  // "host:port"; an IPv6 address is in brackets
  std::string path;    // with its '/', or ""
};

// Parses HOST[:PORT][/PATH]. HOST is a name, an IPv4 address, or an IPv6 address in brackets. InvalidArgument if `text`
// has another form or a user name; the message does not contain `text`, which may have a password.
absl::StatusOr<Place> ParsePlace(std::string_view text, std::string_view default_port);

}  // namespace tributary::otlp
