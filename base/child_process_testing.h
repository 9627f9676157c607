#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "base/child_process.h"
#include "base/status.h"

namespace tributary::testing {

// Forks a child process that calls `live` with its end of a socket to this process. The child then exits with the value
// that `live` has returned.
inline absl::StatusOr<ChildProcess> Fork(const std::function<int(int socket)>& live) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return ErrnoStatus("socketpair", "", errno);
  const pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    _exit(live(pair[1]));
  }
  close(pair[1]);
  return ChildProcess(pid, Fd(pair[0]));
}

}  // namespace tributary::testing
