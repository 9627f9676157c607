#pragma once

#include <string>

#include "base/metrics.h"

// Counters that all exporters have. The label `exporter` is the kind of the exporter.

namespace tributary {

inline Counter& AcceptedRequests(Metrics& metrics, const std::string& exporter) {
  return metrics.AddCounter("tributary_export_requests_total", "Requests that the receiver of the export accepted.",
                            {{"exporter", exporter}});
}

inline Counter& FailedRequests(Metrics& metrics, const std::string& exporter) {
  return metrics.AddCounter("tributary_export_failures_total",
                            "Requests to the receiver of the export that failed and are sent again; if the number "
                            "grows, check the receiver.",
                            {{"exporter", exporter}});
}

}  // namespace tributary
