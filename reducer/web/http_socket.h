#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// A non-blocking TCP socket that listens. It does not share its port with other processes.
struct ListeningSocket {
  Fd fd;
  uint16_t port = 0;
  std::string host;  // as the caller of ListenTcp gave it
  bool is_loopback = false;
};
absl::StatusOr<ListeningSocket> ListenTcp(const std::string& host, uint16_t port);

}  // namespace tributary
