#include "base/service.h"

#include <csignal>
#include <utility>

namespace tributary {

Service::Service(Loop& main_loop) : main_loop_(main_loop), notifier_(ServiceNotifier::TakeFromEnvironment()) {
  Watch("main", main_loop);
}

void Service::Watch(std::string name, Loop& loop) {
  loops_.Add(std::move(name), [&loop](std::function<void()> task) { loop.Post(std::move(task)); });
}

void Service::ReloadOnHangup(Reloader::Options options, Metrics& metrics) {
  reloader_ = std::make_unique<Reloader>(std::move(options), metrics);
  sighup_ = std::make_unique<SignalWatcher>(main_loop_, SIGHUP, [this] { Reload(); });
}

void Service::Reload() {
  if (stopping_) return;
  notifier_.Reloading();
  reloader_->Reload();
  notifier_.Ready(status_);
}

void Service::Ready() {
  ready_ = true;
  notifier_.Ready(status_);
  if (notifier_.watchdog_ns() == 0) return;
  // Pings at half of the period, as sd_watchdog_enabled(3) advises.
  watchdog_ = std::make_unique<Watchdog>(std::move(loops_), notifier_.watchdog_ns() / 2, [this] { notifier_.Ping(); });
}

void Service::SetStatus(std::string status) {
  status_ = std::move(status);
  if (ready_) notifier_.Status(status_);
}

void Service::Stopping() {
  stopping_ = true;
  watchdog_.reset();
  notifier_.Stopping();
}

}  // namespace tributary
