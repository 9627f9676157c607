#pragma once

#include "base/metrics.h"

namespace tributary {

// Logs the value of each metric, one line per series: "metric tributary_x_total 2".
void LogMetrics(const Metrics& metrics);

}  // namespace tributary
