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

// A daemon's side of its service manager, such as systemd: reports readiness and stops, reloads on SIGHUP, and pings
// the watchdog while the daemon's loops make progress. On the main loop's thread.
class Service {
 public:
  // Before there is a second thread (ServiceNotifier). `main_loop` outlives this and is watched.
  explicit Service(Loop& main_loop);

  // Another loop to watch, before Ready. It must live until Stopping.
  void Watch(std::string name, Loop& loop);
  void ReloadOnHangup(Reloader::Options options, Metrics& metrics);
  // One line for people, without the name of the program; reported from Ready on.
  void SetStatus(std::string status);
  // The daemon does its work from now on.
  void Ready();
  // Ends the watch as well: a stop has a time limit of its own.
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
