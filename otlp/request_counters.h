#pragma once

#include <string>

#include "base/metrics.h"

namespace tributary::otlp {

// Counters that all exporters have. `label`: the kind of the exporter, as the label `exporter`.
Counter& AcceptedRequests(Metrics& metrics, const std::string& label);
Counter& FailedRequests(Metrics& metrics, const std::string& label);

}  // namespace tributary::otlp
