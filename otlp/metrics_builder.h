#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/types.h"
#include "profile/attributes.h"
#include "schemas/otlp/metrics_service.pb.h"

namespace tributary::otlp {

using MetricsRequest = ::opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;

// JSON has at most this many times the bytes of a request in protobuf: a control byte of a label takes 6 bytes, and
// everything else grows less.
inline constexpr size_t kMetricsJsonFactor = 6;

struct MetricsOptions {
  Attributes resource;
  std::string scope_name = "tributary";
  std::string scope_version;
  // Limit of a request in protobuf. Most gRPC servers accept 4 MiB.
  size_t bytes_max = 3'700'000;
};

struct MetricsRequests {
  struct One {
    MetricsRequest request;
    uint64_t data_points = 0;
  };
  std::deque<One> requests;
  uint64_t too_large = 0;  // data points that are in no request, because each alone is larger than bytes_max
};

// Makes OTLP metrics requests with the values that all metrics have now. A counter becomes a monotonic, cumulative sum,
// and anything else becomes a gauge. Names, and the labels as attributes, are those of the Prometheus text, because
// OpenTelemetry's specification keeps names of Prometheus unchanged ("Prometheus and OpenMetrics Compatibility"). So a
// metric has one name, no matter whether it was scraped or sent. A Collector that passes the metrics on to Prometheus
// does not change the names either: it adds the suffixes of types and units only if they are missing.
//
// Values of counters and gauges are integers; times, callbacks and rows are doubles. A value that is NaN is unknown,
// and is left out. `now` is the time of all data points. No sum starts later than `now`, even if the system's clock was
// set back. The size of all requests depends on the limits of the series. May be called on any thread.
MetricsRequests BuildMetrics(const Metrics& metrics, UnixNs now, const MetricsOptions& options);

// Returns the UCUM unit that the name of a metric ends with, before `_total`: "s" or "By". Returns "" for other names.
// Not "1", which Prometheus would show as a suffix `_ratio`.
std::string_view MetricUnit(std::string_view name);

}  // namespace tributary::otlp
