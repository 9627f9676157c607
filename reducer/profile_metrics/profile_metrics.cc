#include "reducer/profile_metrics/profile_metrics.h"

#include <pthread.h>

#include <chrono>
#include <utility>

namespace tributary {

ProfileMetrics::ProfileMetrics(ProfileMetricsLoop::Options options, store::Store& store, SymbolLookup symbols,
                               const Clock& clock, Metrics& metrics)
    : loop_(std::move(options), store, std::move(symbols), clock, metrics), thread_([this] { Run(); }) {}

ProfileMetrics::~ProfileMetrics() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    loop_.Cancel();
    changed_.notify_all();
  }
  thread_.join();
}

void ProfileMetrics::Run() {
  pthread_setname_np(pthread_self(), "metrics");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const int64_t wait_ns = loop_.RunOnce();
    lock.lock();
    changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return stopping_; });
  }
}

}  // namespace tributary
