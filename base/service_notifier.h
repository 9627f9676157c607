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

// Reports to the service manager that started this program: one datagram of NAME=value lines each, to the socket that
// $NOTIFY_SOCKET names (a path, or an abstract name after '@'). Without that variable every call does nothing. A
// manager that does not read holds a call up for a second at most; that is logged once.
//
// From any thread. Source: sd_notify(3), sd_watchdog_enabled(3).
class ServiceNotifier {
 public:
  // Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: child processes are no services of
  // their own. Call it before there is a second thread.
  static ServiceNotifier TakeFromEnvironment();

  void Ready(std::string_view status);  // at first, and after each Reloading
  void Status(std::string_view status);
  void Reloading();
  void Stopping();
  void Ping();  // of the watchdog

  // The manager ends this program if it does not Ping that often. 0: it does not.
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
