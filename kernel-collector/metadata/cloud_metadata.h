#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/alarm.h"
#include "base/backoff.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/metadata/cloud.h"
#include "kernel-collector/metadata/http_client.h"
#include "kernel-collector/processes/worker.h"
#include "profile/attributes.h"

namespace tributary {

// Asks the cloud's instance service once, when the collector starts, and again with growing pauses while it does not
// answer: five times within half a minute, then never. One line in the log says what came of it. Loop thread; asks on
// `executor`, `timeout_ns` at most each time, so that nothing waits for it.
class CloudMetadata {
 public:
  struct Options {
    Cloud cloud = Cloud::kNone;  // kNone: nobody is asked
    HttpEndpoint endpoint;
    int64_t timeout_ns = kNsPerSecond;
  };
  // `done` once, with what the service said, or with nothing when it was given up on; from inside Start for kNone.
  CloudMetadata(Options options, Executor& executor, AlarmSource& alarms, Metrics& metrics,
                std::function<void(const Attributes&)> done);

  void Start() { Ask(); }

 private:
  void Ask();
  void Take(const absl::StatusOr<Attributes>& answer);

  const Options options_;
  Executor& executor_;
  const std::function<void(const Attributes&)> done_;
  std::unique_ptr<Alarm> again_;
  int asked_ = 0;
  Backoff pause_ms_;
  Counter &answered_, &failed_;
  CallbackScope scope_;
};

}  // namespace tributary
