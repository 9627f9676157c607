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

// Reports to the service manager that started this program. Each report is one datagram of NAME=value lines, to the
// socket in $NOTIFY_SOCKET (a path, or an abstract name after '@'). Without that variable every call does nothing. If
// the manager does not read, a call blocks for at most a second. The first failure is logged.
//
// Call it from any thread. Source: sd_notify(3), sd_watchdog_enabled(3).
class ServiceNotifier {
 public:
  // Removes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment, because child processes are not
  // services themselves. Call it before a second thread starts.
  static ServiceNotifier TakeFromEnvironment();

  void Ready(std::string_view status);  // at start, and after each Reloading
  void Status(std::string_view status);
  void Reloading();
  void Stopping();
  void Ping();  // for the watchdog

  // The service manager ends this program if Ping is not called at least once in this time. 0: there is no watchdog.
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
