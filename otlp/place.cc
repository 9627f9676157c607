#include "otlp/place.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/parse.h"
#include "base/percent.h"
#include "base/status.h"

namespace tributary::otlp {
namespace {

constexpr size_t kPathBytesMax = 2048;

absl::Status Invalid(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }

// An IPv6 address, optionally with its interface.
bool IsAddress6(std::string_view text) {
  const size_t percent = std::min(text.find('%'), text.size());
  const std::string_view zone = text.substr(percent);
  const std::string address(text.substr(0, percent));
  in6_addr ignored{};
  return address.find('\0') == address.npos && inet_pton(AF_INET6, address.c_str(), &ignored) == 1 &&
         zone.size() != 1 && std::all_of(zone.begin() + !zone.empty(), zone.end(), IsUrlUnreserved);
}

// Accepts a name, an IPv4 address, or an IPv6 address in brackets.
bool IsHost(std::string_view host) {
  auto name = [](char c) { return IsUrlUnreserved(c) && c != '~'; };
  if (host.size() > 253 || host.empty()) return false;
  if (host.front() != '[') return std::all_of(host.begin(), host.end(), name);
  return host.size() > 2 && host.back() == ']' && IsAddress6(host.substr(1, host.size() - 2));
}

bool IsPath(std::string_view path) {
  return path.size() <= kPathBytesMax &&
         std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '#' && c != '\\'; });
}

}  // namespace

absl::StatusOr<Place> ParsePlace(std::string_view text, std::string_view default_port) {
  if (text.find('@') != text.npos) {
    return Invalid(
        "a user name or password must not be in the URL: write the header Authorization into a file, and "
        "name the file with headers_file=FILE");
  }
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string_view path = text.substr(slash);
  text = text.substr(0, slash);
  std::string_view host = text, port = default_port;
  const size_t colon = text.rfind(':');
  if (colon != text.npos && text.find(']', colon) == text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (!IsHost(host)) return Invalid("the host name is malformed");
  absl::StatusOr<HostPort> parsed = ParseHostPort(fmt::format("{}:{}", host, port));
  if (!parsed.ok() || parsed->port == 0) return Invalid("the port must be 1 to 65535");
  if (!IsPath(path)) return Invalid("the path must be shorter, and percent-encoded");
  return Place{.target = fmt::format("{}:{}", host, parsed->port), .path = std::string(path)};
}

}  // namespace tributary::otlp
