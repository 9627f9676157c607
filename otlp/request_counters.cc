#include "otlp/request_counters.h"

namespace tributary::otlp {

Counter& AcceptedRequests(Metrics& metrics, const std::string& label) {
  return metrics.AddCounter("tributary_export_requests_total", "Requests that the receiver of the export accepted.",
                            {{"exporter", label}});
}

Counter& FailedRequests(Metrics& metrics, const std::string& label) {
  return metrics.AddCounter("tributary_export_failures_total",
                            "Requests to the receiver of the export that failed and are sent again; if the number "
                            "grows, check the receiver.",
                            {{"exporter", label}});
}

}  // namespace tributary::otlp
