#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/profile_metrics/profile_metrics_loop.h"
#include "reducer/store/store.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {

// Runs a ProfileMetricsLoop on its own thread, from construction until destruction. Samples that are committed after
// the construction count. The destructor returns soon: it counts nothing more, because the counters end with the
// process. All borrowed objects must outlive it.
class ProfileMetrics {
 public:
  ProfileMetrics(ProfileMetricsLoop::Options options, store::Store& store, SymbolLookup symbols, const Clock& clock,
                 Metrics& metrics);
  ~ProfileMetrics();
  ProfileMetrics(const ProfileMetrics&) = delete;
  ProfileMetrics& operator=(const ProfileMetrics&) = delete;

 private:
  void Run();

  ProfileMetricsLoop loop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;     // last: the thread uses the other members
};

}  // namespace tributary
