#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/loop_watch.h"
#include "base/metrics.h"
#include "base/reload.h"
#include "base/service_notifier.h"

namespace tributary {

// A daemon's connection to its service manager, such as systemd. Reports when the daemon is ready and when it stops.
// Reloads the options on SIGHUP. Pings the service manager's watchdog while the daemon's loops make progress. Use it on
// the main loop's thread.
class Service {
 public:
  // Construct it before a second thread starts (ServiceNotifier). Watches `main_loop`, which must outlive this object.
  explicit Service(Loop& main_loop);

  // Watches another loop. Call it before Ready. The loop must live until Stopping.
  void Watch(std::string name, Loop& loop);
  void ReloadOnHangup(Reloader::Options options, Metrics& metrics);
  // `status` is one line for people, without the name of the program. It is sent with Ready; later changes are sent at
  // once.
  void SetStatus(std::string status);
  // Call it when the daemon starts its work.
  void Ready();
  // Also stops the watchdog, because a stop has its own time limit.
  void Stopping();

 private:
  void Reload();

  Loop& main_loop_;
  ServiceNotifier notifier_;
  LoopProgress loops_;
  std::string status_;
  bool ready_ = false, stopping_ = false;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<SignalWatcher> sighup_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace tributary
