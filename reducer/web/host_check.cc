#include "reducer/web/host_check.h"

#include <algorithm>
#include <string>

namespace tributary {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool IsLocalHost(std::string_view host_header, std::string_view bound_host) {
  std::string host(host_header.substr(0, 256));
  size_t colon = host.rfind(':');
  // A colon inside brackets belongs to an IPv6 address.
  if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    if (!IsPort(std::string_view(host).substr(colon + 1))) return false;
    host.resize(colon);
  }
  std::transform(host.begin(), host.end(), host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (host == "localhost" || host == "127.0.0.1" || host == "[::1]") return true;
  return !host.empty() && host == bound_host;
}

}  // namespace tributary
