#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "otlp/metrics_builder.h"
#include "otlp/sender.h"
#include "otlp/settings.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Sends the metrics of a program to an OTLP receiver: sends the values of all metrics of the process, once at the start
// and then in every interval. A request that fails and may be retried is sent again until the next interval begins.
// Then new values take its place, and its data points count as dropped. The receiver loses no counts by this, because
// sums are cumulative: the next value contains everything that the dropped one did. So the exporter needs no cursor in
// the store.
//
// Memory: one set of requests with all values. The limits of the series limit its size.
//
// MetricsExport has no thread of its own and never sleeps: a PassThread calls it. All borrowed objects must outlive it.
class MetricsExport {
 public:
  // Before a stop, a request begins only if the receiver has this time to answer.
  static constexpr int64_t kAnswerNs = kNsPerSecond;
  static constexpr int64_t kRetryMinNs = kNsPerSecond / 2, kRetryMaxNs = 30 * kNsPerSecond;

  struct Options {
    std::string name;                           // for the log
    std::string metric_label = "otlp_metrics";  // value of the label `exporter`
    MetricsOptions request;
    int64_t interval_ns = 60 * kNsPerSecond;
    int64_t send_timeout_ns = kSendTimeoutNs;
  };
  MetricsExport(Options options, Metrics& metrics, std::unique_ptr<Transport> transport, const Clock& clock);

  // Reads new values if an interval begins, and sends what is unsent unless a retry must wait. Returns the time until
  // the next call in ns: an interval if requests are unsent, but none may begin any more.
  int64_t RunOnce();
  // Reads new values and sends them at once, even if RunOnce would still wait after a failure. Stops early shortly
  // before `deadline`, after Cancel, or when a request fails that may be retried. Returns false if data points are
  // left.
  bool Flush(MonotonicNs deadline);
  // From now on, no request begins later than kAnswerNs before `deadline`. Any thread may call it.
  void EndBy(MonotonicNs deadline) { deadline_ns_ = deadline.value; }
  // Makes the RunOnce or Flush that is in progress return soon, and ends all sending. Any thread may call it.
  void Cancel() {
    cancelled_ = true;
    transport_->Cancel();
  }

 private:
  void Collect();
  void SendUnsent();
  bool Send(const MetricsRequests::One& one, int64_t timeout_ns);
  void CountAccepted(uint64_t data_points, int64_t rejected, std::string_view message);
  int64_t SendTimeout() const;

  const Options options_;
  const Metrics& metrics_;
  const std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  std::deque<MetricsRequests::One> unsent_;
  MonotonicNs collect_at_;     // begin of the next interval
  MonotonicNs not_before_{0};  // after a failure: no attempt before this time
  std::mt19937_64 random_;
  Backoff backoff_ns_{{.min = kRetryMinNs, .max = kRetryMaxNs}};
  std::atomic<bool> cancelled_{false};
  std::atomic<int64_t> deadline_ns_{INT64_MAX};
  LogLimit failure_log_{30 * kNsPerSecond};
  LogLimit rejection_log_{30 * kNsPerSecond};

  Counter& requests_;
  Counter& failures_;
  Counter& data_points_;
  Counter& dropped_;
  Counter& refused_;
  Counter& rejected_;
};

// Returns the options that follow from the settings of a receiver and from the program, whose service.name is
// `program`. The caller sets `name` and `interval_ns`. `host_name`: see ProgramResource.
MetricsExport::Options MetricsExportOptions(const Settings& settings, std::string_view program,
                                            std::string_view host_name, const Metrics& metrics);

}  // namespace tributary::otlp
