#pragma once

#include "base/metrics.h"

namespace tributary {

// Logs each series on its own line, without help and type: "metric tributary_x_total 2".
void LogMetrics(const Metrics& metrics);

}  // namespace tributary
