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

// The same, but each time that a program wakes the readers of `fd` makes `epoll` readable until ClearWakeups, or until
// `fd` is empty. For a ring whose reader is woken for few of its records.
inline absl::Status AddRareWakeup(int epoll, int fd) {
  epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.fd = fd}};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoStatus("watch", "a ring buffer", errno);
  return absl::OkStatus();
}

inline void ClearWakeups(int epoll) {
  epoll_event events[8];
  epoll_wait(epoll, events, 8, /*timeout=*/0);
}

}  // namespace tributary
