#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "otlp/transport.h"
#include "reducer/export/export_url.h"

namespace tributary {

// The environment variables OTEL_EXPORTER_OTLP_* and OTEL_EXPORTER_OTLP_PROFILES_*, by name. The second form has
// precedence. Empty variables count as unset. The variables fill what a URL leaves open: HEADERS, COMPRESSION, TIMEOUT,
// CERTIFICATE, CLIENT_CERTIFICATE and CLIENT_KEY. PROTOCOL=http/json sets the encoding of an URL for HTTP. ENDPOINT,
// PROTOCOL and INSECURE make the URL of `--export otlp`. Values may be secret. So error messages contain no value
// except the endpoint, without user name and password.
using ExportVariables = std::map<std::string, std::string>;

// Parses a value of --export like ParseExportUrl. If it is "otlp", makes the URL of the variables. InvalidArgument also
// for variables that do not make a URL; the message names the variable.
absl::StatusOr<ExportUrl> ResolveExportUrl(std::string_view text, const ExportVariables& variables);

// The settings of an exporter for OTLP.
struct OtlpSettings {
  otlp::TransportOptions transport;  // without `version`
  bool json = false;                 // for HTTP
  int64_t timeout_ns = 0;            // of one request
};

// Takes each setting from the URL, or else from the variables, or else the default, and reads the file of headers.
// InvalidArgument: a variable or a header is invalid, or other users may read the file of headers. Returns the errors
// of ReadSecretFile. `url` must be one for OTLP.
absl::StatusOr<OtlpSettings> ResolveOtlpSettings(const ExportUrl& url, const ExportVariables& variables);

}  // namespace tributary
