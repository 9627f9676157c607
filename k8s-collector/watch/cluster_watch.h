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

// Follows all kinds side by side: gives each ResourceWatch its answers, ends those that fall silent, and says in the
// log what is wrong, once for each trouble. One kind that is refused or slow does not hold up the others. On its
// owner's thread.
class ClusterWatch {
 public:
  // All of them outlive the watch.
  struct Dependencies {
    ApiTransport& transport;
    AlarmSource& alarms;
    WatchEvents& events;
    const Clock& clock;
    Metrics& metrics;
  };
  // `complete` is called once, when each kind has been listed, or was refused.
  ClusterWatch(const Dependencies& dependencies, ResourceWatch::Options options, std::function<void()> complete);
  ~ClusterWatch();

  void Start();

 private:
  static constexpr uint64_t kTickMs = 250;

  struct Kind {
    std::unique_ptr<ResourceWatch> watch;
    std::unique_ptr<ApiTransport::Request> request;  // under way
    MonotonicNs heard;                               // the last byte of it
    int64_t silence_ns = 0;
    std::string told;  // the trouble that was logged
  };

  void Tick();
  void Begin(Kind& kind);
  void End(Kind& kind, const absl::Status& transport);
  void Tell(Kind& kind);
  void LookWhetherComplete();

  ApiTransport& transport_;
  const Clock& clock_;
  WatchMetrics metrics_;
  std::array<Kind, kResourceKindCount> kinds_;
  std::function<void()> complete_;  // null once called
  std::unique_ptr<Alarm> tick_;
};

}  // namespace tributary
