#include "reducer/metric_options.h"

#include <string_view>
#include <utility>

#include "base/status.h"
#include "reducer/profile_metrics/metric_spec.h"

namespace tributary {

void AddMetricOptions(Options& table, MetricTexts& texts) {
  const ReducerOptions defaults;
  table.Add({.name = "metric",
             .help = "metric for Prometheus that the reducer makes from samples, such as the CPU seconds of each "
                     "service: name=NAME,selector={label=\"value\"},by=service,function; may be repeated "
                     "(docs/profile-metrics.md); not for the environment, where commas separate values",
             .value_name = "SPEC",
             .check = [](std::string_view text) { return MetricSpec::Parse(text).status(); }},
            &texts.metrics);
  table.Add({.name = "metric-series-max",
             .help = "largest number of series of one metric of --metric; further samples count in a series with the "
                     "label value (other)",
             .value_name = "N"},
            &texts.series_max, static_cast<int64_t>(defaults.metric_series_max), 1, 100'000);
  table.Add({.name = "metric-total-series-max",
             .help = "largest number of series of all metrics of --metric together; each metric may have an equal "
                     "part of them",
             .value_name = "N"},
            &texts.total_series_max, static_cast<int64_t>(defaults.metric_total_series_max), 32, 1'000'000);
}

absl::Status TakeMetrics(const MetricTexts& texts, ReducerOptions& out) {
  absl::StatusOr<std::vector<MetricSpec>> specs = ParseMetricSpecs(texts.metrics);
  RETURN_IF_ERROR(WithContext(specs.status(), "--metric"));
  out.metrics = *std::move(specs);
  out.metric_series_max = static_cast<size_t>(texts.series_max);
  out.metric_total_series_max = static_cast<size_t>(texts.total_series_max);
  return absl::OkStatus();
}

}  // namespace tributary
