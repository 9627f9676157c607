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

// Connects a daemon to its service manager, such as systemd. Reports to the manager when the daemon is ready and when
// it stops. Reloads the options on SIGHUP. Pings the service manager's watchdog while the daemon's loops make progress.
// Use it on the main loop's thread.
class Service {
 public:
  // The caller must construct it before it starts other threads (see ServiceNotifier). Adds `main_loop`, which must
  // outlive this object, to the loops that the watchdog checks.
  explicit Service(Loop& main_loop);

  // Adds another loop to those that the watchdog checks. Call it before Ready. The loop must exist until Stopping is
  // called.
  void Watch(std::string name, Loop& loop);
  void ReloadOnHangup(Reloader::Options options, Metrics& metrics);
  // `status` is one line for people, without the name of the program. Before Ready, the status is only stored. Ready
  // sends it. After Ready, SetStatus sends it at once.
  void SetStatus(std::string status);
  // Reports that the daemon is ready, and starts the watchdog.
  void Ready();
  // Reports that the daemon stops. Also stops the watchdog, because the service manager has another time limit for
  // stopping.
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
