#include "base/loop_watch.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace tributary {

void LoopProgress::Add(std::string name, std::function<void(std::function<void()>)> post) {
  loops_.push_back({.name = std::move(name), .post = std::move(post)});
}

void LoopProgress::Ask() {
  for (Watched& loop : loops_) {
    if (!loop.answered->exchange(false)) continue;  // the earlier task has not run yet
    loop.post([answered = loop.answered] { *answered = true; });
  }
}

bool LoopProgress::Look() {
  bool all = true;
  for (Watched& loop : loops_) {
    const bool stuck = !*loop.answered;
    if (stuck && !loop.named) {
      LogError(
          "an event loop is stuck loop=\"{}\": the service manager's watchdog gets no pings until the event loop runs "
          "again",
          loop.name);
    }
    if (!stuck && loop.named) LogInfo("an event loop that was stuck runs again loop=\"{}\"", loop.name);
    loop.named = stuck;
    all &= !stuck;
  }
  return all;
}

Watchdog::Watchdog(LoopProgress loops, int64_t period_ns, std::function<void()> ping)
    : loops_(std::move(loops)), period_ns_(period_ns), ping_(std::move(ping)), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  over_.notify_all();
  thread_.join();
}

bool Watchdog::WaitFor(int64_t ns) {
  std::unique_lock lock(mutex_);
  return !over_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return stop_; });
}

void Watchdog::Run() {
  loops_.Ask();
  while (WaitFor(period_ns_)) {
    while (!loops_.Look()) {
      if (!WaitFor(period_ns_ / kLooksPerPeriod)) return;
    }
    ping_();
    loops_.Ask();
  }
}

}  // namespace tributary
