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

// Requests the machine's attributes from the cloud's instance service when the collector starts. If an attempt fails,
// tries again after a pause. There are at most five attempts, with growing pauses of 30 s in total. Logs the result in
// one line. Loop thread only. Each attempt runs on `executor` and takes at most `timeout_ns`.
class CloudMetadata {
 public:
  struct Options {
    Cloud cloud = Cloud::kNone;  // kNone: no request is sent
    HttpEndpoint endpoint;
    int64_t timeout_ns = kNsPerSecond;
  };
  // `done` is called once: with the service's attributes, or without attributes if the last attempt failed. If there is
  // no cloud (kNone), Start calls `done` without attributes.
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
