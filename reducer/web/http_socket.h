#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// A listening TCP socket, non-blocking. Unlike the defaults of cpp-httplib it never shares its port with another
// process.
struct ListeningSocket {
  Fd fd;
  uint16_t port = 0;
  bool is_loopback = false;
};
absl::StatusOr<ListeningSocket> ListenTcp(const std::string& host, uint16_t port);

}  // namespace tributary
