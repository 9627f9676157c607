#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "otlp/transport.h"
#include "reducer/export/export_url.h"

namespace tributary {

// How often metrics are sent, in milliseconds. It has no form for one signal.
inline constexpr std::string_view kMetricIntervalVariable = "OTEL_METRIC_EXPORT_INTERVAL";

// The environment variables OTEL_EXPORTER_OTLP_*, by name, and kMetricIntervalVariable. Each variable of the first kind
// has a form for one signal, such as OTEL_EXPORTER_OTLP_PROFILES_*, which has precedence. Empty variables count as
// unset. The variables fill what a URL leaves open: HEADERS, COMPRESSION, TIMEOUT, CERTIFICATE, CLIENT_CERTIFICATE and
// CLIENT_KEY. PROTOCOL=http/json sets the encoding of an URL for HTTP. ENDPOINT, PROTOCOL and INSECURE make the URL of
// `--export otlp`. As OpenTelemetry's specification requires, unknown keywords and invalid numbers are ignored with a
// warning in the log, and the case of keywords does not matter. Values may be secret. So neither errors nor warnings
// contain them.
using ExportVariables = std::map<std::string, std::string>;

// Parses a value of --export like ParseExportUrl. If it is "otlp", perhaps with parameters, makes the URL of the
// variables. InvalidArgument also for an endpoint that makes no URL; the message names the variable.
absl::StatusOr<ExportUrl> ResolveExportUrl(std::string_view text, const ExportVariables& variables);

// Does the same for all values of --export. InvalidArgument also if two of them have the same cursor name: each of them
// would move the cursor past samples that the other one has not sent. The message names the option and its value.
absl::StatusOr<std::vector<ExportUrl>> ResolveExportUrls(const std::vector<std::string>& texts,
                                                         const ExportVariables& variables);

// The settings of an exporter for OTLP.
struct OtlpSettings {
  otlp::TransportOptions transport;                     // without `version`
  otlp::Encoding encoding = otlp::Encoding::kProtobuf;  // for HTTP
  int64_t timeout_ns = 0;                               // of one request
  int64_t interval_ns = 0;                              // for metrics: how often they are sent
};

// Takes each setting from the URL, or else from the variables, or else the default, and reads the file of headers.
// InvalidArgument: a header is invalid, or other users may read the file of headers. Returns the errors
// of ReadSecretFile. `url` must be one for OTLP.
absl::StatusOr<OtlpSettings> ResolveOtlpSettings(const ExportUrl& url, const ExportVariables& variables);

}  // namespace tributary
