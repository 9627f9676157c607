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

// Asks the cloud's instance service once, when the collector starts. If the service does not answer, asks again with
// growing pauses. There are five attempts in all, with pauses of 30 s in total. One line in the log reports the result.
// Loop thread. Requests run on `executor` and take at most `timeout_ns` each, so the loop never waits for them.
class CloudMetadata {
 public:
  struct Options {
    Cloud cloud = Cloud::kNone;  // kNone: no request is sent
    HttpEndpoint endpoint;
    int64_t timeout_ns = kNsPerSecond;
  };
  // `done` is called once, with the service's attributes, or with none after the last failed attempt. For kNone it is
  // called from inside Start.
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
