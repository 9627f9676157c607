#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace tributary {

// Sends reports to the service manager (such as systemd) that started this program. Each report is a datagram of
// NAME=value lines. The environment variable NOTIFY_SOCKET names the socket: a path, or an abstract name after '@'.
// Without this variable, all methods do nothing. If the manager does not read the socket, a call blocks for at most a
// second. Only the first failure is logged.
//
// Thread-safe. Source: sd_notify(3), sd_watchdog_enabled(3).
class ServiceNotifier {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, because child processes
  // are not services themselves. Call it before a second thread starts.
  static ServiceNotifier TakeFromEnvironment();

  void Ready(std::string_view status);  // at start, and after each Reloading
  void Status(std::string_view status);
  void Reloading();
  void Stopping();
  void Ping();  // for the watchdog

  // Ping must be called at least once in this time, else the service manager ends this program. 0: the manager's
  // watchdog is off.
  int64_t watchdog_ns() const { return watchdog_ns_; }

 private:
  void Send(const std::string& message);

  Fd socket_;
  sockaddr_un address_{};
  socklen_t address_size_ = 0;
  int64_t watchdog_ns_ = 0;
  std::unique_ptr<std::atomic<bool>> failed_ = std::make_unique<std::atomic<bool>>(false);
};

}  // namespace tributary
