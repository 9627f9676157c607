#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/alarm.h"
#include "base/clock.h"
#include "k8s-collector/watch/api_transport.h"
#include "k8s-collector/watch/resource_watch.h"

namespace tributary {

// Watches all kinds of objects at the same time, with a ResourceWatch for each kind. Passes each ResourceWatch the
// answers to its requests, cancels requests that receive no data for too long, and logs each problem once. A kind that
// is refused or slow does not delay the others. Use it on the thread of its owner.
class ClusterWatch {
 public:
  // All these objects must outlive the watch.
  struct Dependencies {
    ApiTransport& transport;
    AlarmSource& alarms;
    WatchEvents& events;
    const Clock& clock;
    Metrics& metrics;
  };
  // Calls `complete` once, when every kind has been listed or was refused.
  ClusterWatch(const Dependencies& dependencies, ResourceWatch::Options options, std::function<void()> complete);
  ~ClusterWatch();

  void Start();

 private:
  static constexpr uint64_t kTickMs = 250;

  struct Kind {
    std::unique_ptr<ResourceWatch> watch;
    std::unique_ptr<ApiTransport::Request> request;  // in progress
    MonotonicNs received_at;                         // time of its last byte
    int64_t silence_ns = 0;
    bool lacks_credentials = false;  // its last request was not sent
    std::string logged_trouble;      // the problem that was logged
  };

  void Tick();
  void Begin(Kind& kind);
  void End(Kind& kind, const absl::Status& transport);
  void LogTrouble(Kind& kind);
  void LookWhetherComplete();

  ApiTransport& transport_;
  const Clock& clock_;
  WatchMetrics metrics_;
  std::array<Kind, kResourceKindCount> kinds_;
  std::function<void()> complete_;  // null once called
  std::unique_ptr<Alarm> tick_;
};

}  // namespace tributary
