#include "kernel-collector/metadata/cloud_metadata.h"

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int kAttempts = 5;
constexpr Backoff::Bounds kPauseMs = {.min = 2000, .max = 16'000};  // 30 s in total

absl::StatusOr<Attributes> AskNow(Cloud cloud, const HttpEndpoint& endpoint, int64_t timeout_ns) {
  const MonotonicNs deadline{Clock::Real().Monotonic().value + timeout_ns};
  return AskCloud(
      cloud, [&](const HttpRequest& request) { return HttpExchange(endpoint, request, deadline, kCloudBodyBytesMax); });
}

}  // namespace

CloudMetadata::CloudMetadata(Options options, Executor& executor, AlarmSource& alarms, Metrics& metrics,
                             std::function<void(const Attributes&)> done)
    : options_(std::move(options)),
      executor_(executor),
      done_(std::move(done)),
      again_(alarms.NewAlarm([this] { Ask(); })),
      pause_ms_(kPauseMs),
      answered_(metrics.AddCounter("tributary_collector_cloud_requests_total",
                                   "Attempts to get metadata from the cloud's instance metadata service, by result",
                                   {{"result", "answered"}})),
      failed_(metrics.AddCounter("tributary_collector_cloud_requests_total",
                                 "Attempts to get metadata from the cloud's instance metadata service, by result",
                                 {{"result", "failed"}})) {}

void CloudMetadata::Ask() {
  if (options_.cloud == Cloud::kNone) return done_({});
  ++asked_;
  auto answer = std::make_shared<absl::StatusOr<Attributes>>(absl::UnknownError(""));
  const bool taken = executor_.Submit(
      [answer, options = options_] { *answer = AskNow(options.cloud, options.endpoint, options.timeout_ns); },
      scope_.Wrap([this, answer] { Take(*answer); }));
  if (!taken) Take(Error(absl::StatusCode::kResourceExhausted, "too many other requests are waiting"));
}

void CloudMetadata::Take(const absl::StatusOr<Attributes>& answer) {
  if (answer.ok()) {
    answered_.Add();
    LogInfo("cloud metadata received provider={} region={} instance={}", CloudName(options_.cloud),
            FindAttribute(*answer, "cloud.region"), FindAttribute(*answer, "host.id"));
    return done_(*answer);
  }
  failed_.Add();
  if (asked_ < kAttempts) return again_->StartOnce(static_cast<uint64_t>(pause_ms_.Next()));
  LogWarning(
      "cannot get cloud metadata provider={} cause=\"{}\" attempts={}: if you do not need cloud metadata, set "
      "--cloud-metadata off",
      CloudName(options_.cloud), Message(answer.status()), asked_);
  done_({});
}

}  // namespace tributary
