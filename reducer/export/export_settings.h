#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "otlp/settings.h"
#include "reducer/export/export_url.h"

namespace tributary {

// How often metrics are sent, in milliseconds. It has no form for one signal.
inline constexpr std::string_view kMetricIntervalVariable = "OTEL_METRIC_EXPORT_INTERVAL";

// The environment variables OTEL_EXPORTER_OTLP_*, and kMetricIntervalVariable. They fill what a URL leaves open
// (otlp/settings.h). ENDPOINT, PROTOCOL and INSECURE make the URL of `--export otlp`.
using ExportVariables = otlp::Variables;

// Parses a value of --export like ParseExportUrl. If it is "otlp", perhaps with parameters, makes the URL of the
// variables. InvalidArgument also for an endpoint that makes no URL; the message names the variable.
absl::StatusOr<ExportUrl> ResolveExportUrl(std::string_view text, const ExportVariables& variables);

// Does the same for all values of --export. InvalidArgument also if two of them have the same cursor name: each of them
// would move the cursor past samples that the other one has not sent. The message names the option and its value.
absl::StatusOr<std::vector<ExportUrl>> ResolveExportUrls(const std::vector<std::string>& texts,
                                                         const ExportVariables& variables);

// The settings of an exporter for OTLP.
struct OtlpSettings : otlp::Settings {
  int64_t interval_ns = 0;  // for metrics: how often they are sent
};

// Returns the errors of otlp::ResolveSettings. `url` must be one for OTLP.
absl::StatusOr<OtlpSettings> ResolveOtlpSettings(const ExportUrl& url, const ExportVariables& variables);

}  // namespace tributary
