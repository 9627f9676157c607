#include "otlp/metrics_export.h"

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "otlp/program_resource.h"
#include "otlp/request_counters.h"

namespace tributary::otlp {

using ::opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceResponse;

MetricsExport::MetricsExport(Options options, Metrics& metrics, std::unique_ptr<Transport> transport,
                             const Clock& clock)
    : options_(std::move(options)),
      metrics_(metrics),
      transport_(std::move(transport)),
      clock_(clock),
      collect_at_(clock.Monotonic()),
      random_(static_cast<uint64_t>(clock.Unix().value)),
      requests_(AcceptedRequests(metrics, options_.metric_label)),
      failures_(FailedRequests(metrics, options_.metric_label)),
      data_points_(metrics.AddCounter("tributary_export_data_points_total",
                                      "Data points in requests that the receiver of metrics accepted, including "
                                      "rejected data points.",
                                      {{"exporter", options_.metric_label}})),
      dropped_(metrics.AddCounter("tributary_export_dropped_data_points_total",
                                  "Data points of metrics that were not sent, because their requests failed "
                                  "until the next interval began; the next values contain theirs.",
                                  {{"exporter", options_.metric_label}})),
      refused_(metrics.AddCounter("tributary_export_refused_data_points_total",
                                  "Data points in requests that the receiver of metrics refused, and data "
                                  "points that are too large for a request; the receiver's log says why.",
                                  {{"exporter", options_.metric_label}})),
      rejected_(metrics.AddCounter(
          "tributary_export_rejected_data_points_total",
          "Data points that the receiver of metrics rejected, although it accepted the rest of the request.",
          {{"exporter", options_.metric_label}})) {}

int64_t MetricsExport::RunOnce() {
  const int64_t now = clock_.Monotonic().value;
  if (now >= collect_at_.value) {
    Collect();
    collect_at_.value += options_.interval_ns;
    // Intervals that passed meanwhile are left out, for example after the machine was suspended.
    if (collect_at_.value <= now) collect_at_.value = now + options_.interval_ns;
  }
  if (now >= not_before_.value) SendUnsent();
  if (!unsent_.empty() && SendTimeout() == 0) return options_.interval_ns;  // nothing is sent until Flush or the end
  const int64_t next = unsent_.empty() ? collect_at_.value : std::min(collect_at_.value, not_before_.value);
  return std::max<int64_t>(next - clock_.Monotonic().value, 0);
}

bool MetricsExport::Flush(MonotonicNs deadline) {
  EndBy(deadline);
  Collect();
  SendUnsent();
  return unsent_.empty();
}

// Replaces unsent requests by requests with the values of now.
void MetricsExport::Collect() {
  uint64_t dropped = 0, held = 0;
  for (const MetricsRequests::One& one : unsent_) dropped += one.data_points;
  if (dropped > 0) {
    dropped_.Add(dropped);
    if (failure_log_.Allow(clock_.Monotonic(), &held)) {
      LogWarning("metrics were not exported, new values take their place exporter={} data_points={} suppressed={}",
                 options_.name, dropped, held);
    }
  }
  MetricsRequests made = BuildMetrics(metrics_, clock_.Unix(), options_.request);
  unsent_ = std::move(made.requests);
  refused_.Add(made.too_large);
}

// Sends requests until one of them fails and may be retried.
void MetricsExport::SendUnsent() {
  while (!unsent_.empty()) {
    const int64_t timeout_ns = SendTimeout();
    if (timeout_ns == 0 || !Send(unsent_.front(), timeout_ns)) return;
    unsent_.pop_front();
  }
}

// Returns 0 if no request may begin now.
int64_t MetricsExport::SendTimeout() const {
  const int64_t left = deadline_ns_ - clock_.Monotonic().value;
  return left < kAnswerNs || cancelled_ ? 0 : std::min(left, options_.send_timeout_ns);
}

// Returns true if this request needs no other attempt.
bool MetricsExport::Send(const MetricsRequests::One& one, int64_t timeout_ns) {
  ExportMetricsServiceResponse response;
  const CallResult result = transport_->Call(one.request, &response, timeout_ns);
  uint64_t held = 0;
  if (result.status.ok()) {
    backoff_ns_.Reset();
    CountAccepted(one.data_points, response.partial_success().rejected_data_points(),
                  response.partial_success().error_message());
    return true;
  }
  if (cancelled_) return false;
  if (result.may_retry) {
    failures_.Add();
    if (failure_log_.Allow(clock_.Monotonic(), &held)) {
      LogWarning("export cannot send metrics, will try again exporter={} error=\"{}\" suppressed={}", options_.name,
                 result.status.ToString(), held);
    }
    not_before_.value =
        clock_.Monotonic().value + std::max(backoff_ns_.NextJittered(random_), result.retry_after_ns.value_or(0));
    return false;
  }
  backoff_ns_.Reset();
  refused_.Add(one.data_points);
  if (rejection_log_.Allow(clock_.Monotonic(), &held)) {
    LogError(
        "export refused, these values of metrics are not sent again exporter={} data_points={} error=\"{}\" "
        "suppressed={}",
        options_.name, one.data_points, result.status.ToString(), held);
  }
  return true;
}

void MetricsExport::CountAccepted(uint64_t data_points, int64_t rejected, std::string_view message) {
  requests_.Add();
  data_points_.Add(data_points);
  rejected_.Add(std::min<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(rejected, 0)), data_points));
  uint64_t held = 0;
  if ((rejected > 0 || !message.empty()) && rejection_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning(
        "the receiver of the export rejected metrics or sent a warning exporter={} rejected_data_points={} "
        "message=\"{}\" suppressed={}",
        options_.name, rejected, message.substr(0, kMessageBytesMax), held);
  }
}

MetricsExport::Options MetricsExportOptions(const Settings& settings, std::string_view program,
                                            std::string_view host_name, const Metrics& metrics) {
  MetricsExport::Options out;
  out.request.resource = ProgramResource(program, host_name, metrics.start());
  out.request.scope_version = std::string(kVersion);
  if (settings.encoding == Encoding::kJson) out.request.bytes_max /= kMetricsJsonFactor;
  out.send_timeout_ns = settings.timeout_ns;
  return out;
}

}  // namespace tributary::otlp
