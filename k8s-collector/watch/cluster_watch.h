#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/log.h"
#include "k8s-collector/watch/api_transport.h"
#include "k8s-collector/watch/resource_watch.h"

namespace tributary {

// Watches all kinds of objects at the same time, with a ResourceWatch for each kind. Passes each ResourceWatch the
// answers to its requests, cancels requests that receive no data for too long, and logs each problem once. If the API
// server cannot be reached or does not accept the credentials, this is one problem of all kinds. A kind that is refused
// or slow does not delay the others.
// Use it on the thread of its owner.
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
    int status = 0;               // of the answer to the request in progress, or to the last one. 0: no answer
    bool shares_trouble = false;  // the last request failed, for a reason that is the same for all kinds
    std::string logged_trouble;   // the problem of this kind that was logged
  };

  void Tick();
  void Begin(Kind& kind);
  void End(Kind& kind, const absl::Status& transport);
  void LogTrouble(Kind& kind);
  void LogSharedTrouble(const std::string& why);
  void OnAccepted(Kind& kind);
  void LookWhetherComplete();

  ApiTransport& transport_;
  const Clock& clock_;
  WatchMetrics metrics_;
  std::array<Kind, kResourceKindCount> kinds_;
  std::string logged_trouble_;  // the problem of all kinds that was logged
  LogLimit changed_trouble_{kNsPerMinute};
  std::function<void()> complete_;  // null once called
  std::unique_ptr<Alarm> tick_;
};

}  // namespace tributary
