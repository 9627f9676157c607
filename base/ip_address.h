#pragma once

#include <arpa/inet.h>

#include <string>

namespace tributary {

// Returns true for a numeric address of IPv4 or IPv6, without brackets.
inline bool IsIpAddress(const std::string& text) {
  in6_addr any{};
  return inet_pton(AF_INET, text.c_str(), &any) == 1 || inet_pton(AF_INET6, text.c_str(), &any) == 1;
}

}  // namespace tributary
