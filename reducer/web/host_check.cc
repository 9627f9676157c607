#include "reducer/web/host_check.h"

#include <algorithm>
#include <string>

#include "base/ip_address.h"

namespace tributary {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the host without the port, in lower case. Returns "" if the port is not valid.
std::string HostOf(std::string_view host_header) {
  std::string host(host_header.substr(0, 256));
  size_t colon = host.rfind(':');
  // A colon inside brackets belongs to an IPv6 address.
  if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    if (!IsPort(std::string_view(host).substr(colon + 1))) return "";
    host.resize(colon);
  }
  std::transform(host.begin(), host.end(), host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return host;
}

// An IPv6 address is in brackets.
bool IsAddress(const std::string& host) {
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets != (host.find(':') != std::string::npos)) return false;
  return IsIpAddress(in_brackets ? host.substr(1, host.size() - 2) : host);
}

}  // namespace

bool IsLocalHost(std::string_view host_header, std::string_view bound_host) {
  const std::string host = HostOf(host_header);
  if (host == "localhost" || host == "127.0.0.1" || host == "[::1]") return true;
  return !host.empty() && host == bound_host;
}

bool IsFixedHost(std::string_view host_header, std::string_view bound_host) {
  const std::string host = HostOf(host_header);
  return host == "localhost" || IsAddress(host) || (!host.empty() && host == bound_host);
}

}  // namespace tributary
