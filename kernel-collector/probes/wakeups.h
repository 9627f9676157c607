#pragma once

#include <sys/epoll.h>

#include <cerrno>

#include "absl/status/status.h"
#include "base/status.h"

namespace tributary {

// Makes `epoll` readable while `fd` is readable, until `fd` is closed.
inline absl::Status AddWakeup(int epoll, int fd) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoStatus("watch", "a ring buffer", errno);
  return absl::OkStatus();
}

}  // namespace tributary
