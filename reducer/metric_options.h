#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/options.h"
#include "reducer/options.h"

namespace tributary {

// Options of the metrics that are made from samples (docs/profile-metrics.md).
struct MetricTexts {
  std::vector<std::string> metrics;  // as given
  int64_t series_max = 0, total_series_max = 0;
};
// Adds the options to `table`. When the table is parsed, their values are in `texts`.
void AddMetricOptions(Options& table, MetricTexts& texts);
// Checks the values together, and writes them to `out`. InvalidArgument: two metrics have the same name, or there are
// too many.
absl::Status TakeMetrics(const MetricTexts& texts, ReducerOptions& out);

}  // namespace tributary
