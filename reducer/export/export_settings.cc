#include "reducer/export/export_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii_case.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/secret_file.h"
#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

constexpr int64_t kTimeoutNs = 10 * kNsPerSecond;  // OpenTelemetry's default
constexpr size_t kHeadersFileBytesMax = 64u << 10;

struct Variable {
  std::string name;
  std::string_view value;  // "": neither form is set
  bool is_per_signal = false;
};

Variable Find(const ExportVariables& variables, std::string_view suffix) {
  for (const bool is_per_signal : {true, false}) {
    std::string name = fmt::format("OTEL_EXPORTER_OTLP_{}{}", is_per_signal ? "PROFILES_" : "", suffix);
    const auto it = variables.find(name);
    if (it != variables.end() && !it->second.empty()) return {std::move(name), it->second, is_per_signal};
  }
  return {};
}

absl::Status Invalid(const Variable& variable, std::string_view must) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("{} must be {}", variable.name, must));
}

absl::StatusOr<ExportUrl> ParseEndpoint(const Variable& variable, std::string_view url) {
  absl::StatusOr<ExportUrl> out = ParseExportUrl(url);
  if (!out.ok()) return WithContext(out.status(), variable.name);
  return out;
}

// Removes "http://" or "https://" from the start of `*endpoint`. Returns whether it was https, or nullopt if the
// endpoint begins with neither.
std::optional<bool> TakeScheme(std::string_view* endpoint) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!EqualsIgnoringCase(endpoint->substr(0, scheme.size()), scheme)) continue;
    endpoint->remove_prefix(scheme.size());
    return scheme == "https://";
  }
  return std::nullopt;
}

// The specification lets a gRPC endpoint leave out its scheme: then INSECURE decides.
absl::StatusOr<ExportUrl> GrpcUrl(const Variable& variable, const ExportVariables& variables) {
  std::string_view endpoint = variable.value;
  std::optional<bool> tls = TakeScheme(&endpoint);
  if (!tls) tls = !EqualsIgnoringCase(Find(variables, "INSECURE").value, "true");
  return ParseEndpoint(variable, fmt::format("{}{}", *tls ? "otlps://" : "otlp://", endpoint));
}

// The endpoint for all signals is a base, to which the signal's path is added. The endpoint for profiles is used as it
// is; without a path, its path is "/".
absl::StatusOr<ExportUrl> HttpUrl(const Variable& variable) {
  std::string_view endpoint = variable.value;
  const std::optional<bool> tls = TakeScheme(&endpoint);
  if (!tls) return Invalid(variable, "an http:// or https:// URL");
  const size_t slash = std::min(endpoint.find('/'), endpoint.size());
  std::string authority(endpoint.substr(0, slash)), path(endpoint.substr(slash));
  if (authority.rfind(':') == std::string::npos || authority.ends_with(']')) authority += *tls ? ":443" : ":80";
  if (!variable.is_per_signal) {
    while (path.ends_with('/')) path.pop_back();
    path += otlp::kProfilesSignal.http_path;
  }
  const std::string_view scheme = *tls ? "otlp+https://" : "otlp+http://";
  ASSIGN_OR_RETURN(ExportUrl url, ParseEndpoint(variable, fmt::format("{}{}{}", scheme, authority, path)));
  if (path.size() <= 1) {
    url.path = "/";
    url.cursor_name = fmt::format("{}{}/", scheme, url.target);
  }
  return url;
}

absl::Status FillHeaders(const ExportUrl& url, const ExportVariables& variables, otlp::Headers* headers) {
  if (const auto file = url.parameters.find("headers_file"); file != url.parameters.end()) {
    ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(file->second, kHeadersFileBytesMax));
    absl::StatusOr<otlp::Headers> parsed = otlp::ParseHeaderFile(text);
    if (!parsed.ok()) return WithContext(parsed.status(), file->second);
    *headers = *std::move(parsed);
    return absl::OkStatus();
  }
  const Variable variable = Find(variables, "HEADERS");
  absl::StatusOr<otlp::Headers> parsed = otlp::ParseHeaderList(variable.value);
  if (!parsed.ok()) return WithContext(parsed.status(), variable.name);
  *headers = *std::move(parsed);
  return absl::OkStatus();
}

void FillTls(const ExportUrl& url, const ExportVariables& variables, otlp::TlsFiles* files) {
  const auto ca = url.parameters.find("tls_ca");
  files->ca = ca != url.parameters.end() ? ca->second : std::string(Find(variables, "CERTIFICATE").value);
  // The certificate and its key come from the same place.
  const bool in_url = url.parameters.contains("tls_cert");
  files->cert =
      in_url ? url.parameters.find("tls_cert")->second : std::string(Find(variables, "CLIENT_CERTIFICATE").value);
  files->key = in_url ? url.parameters.find("tls_key")->second : std::string(Find(variables, "CLIENT_KEY").value);
}

absl::StatusOr<bool> IsGzip(const ExportUrl& url, const ExportVariables& variables) {
  if (const auto it = url.parameters.find("compression"); it != url.parameters.end()) return it->second == "gzip";
  const Variable variable = Find(variables, "COMPRESSION");
  if (variable.value.empty() || variable.value == "gzip") return true;
  if (variable.value == "none") return false;
  return Invalid(variable, "gzip or none");
}

absl::StatusOr<int64_t> TimeoutNs(const ExportUrl& url, const ExportVariables& variables) {
  if (const auto it = url.parameters.find("timeout"); it != url.parameters.end()) return ParseDurationNs(it->second);
  const Variable variable = Find(variables, "TIMEOUT");
  if (variable.value.empty()) return kTimeoutNs;
  const std::optional<int64_t> ms = ParseNumber<int64_t>(variable.value);
  if (!ms || *ms < 1 || *ms > 600'000) return Invalid(variable, "1 to 600000 (milliseconds)");
  return *ms * kNsPerMs;
}

}  // namespace

absl::StatusOr<ExportUrl> ResolveExportUrl(std::string_view text, const ExportVariables& variables) {
  if (text != "otlp") return ParseExportUrl(text);
  const Variable protocol = Find(variables, "PROTOCOL");
  const bool is_grpc = protocol.value == "grpc";
  if (!is_grpc && !protocol.value.empty() && protocol.value != "http/protobuf" && protocol.value != "http/json") {
    return Invalid(protocol, "grpc, http/protobuf or http/json");
  }
  Variable endpoint = Find(variables, "ENDPOINT");
  if (endpoint.value.empty()) {
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", is_grpc ? "http://localhost:4317" : "http://localhost:4318"};
  }
  if (endpoint.value.find('?') != endpoint.value.npos) return Invalid(endpoint, "a URL without a question mark");
  return is_grpc ? GrpcUrl(endpoint, variables) : HttpUrl(endpoint);
}

absl::StatusOr<OtlpSettings> ResolveOtlpSettings(const ExportUrl& url, const ExportVariables& variables) {
  OtlpSettings out;
  out.transport.target = url.target;
  out.transport.tls = url.tls;
  if (url.tls) FillTls(url, variables, &out.transport.tls_files);
  RETURN_IF_ERROR(FillHeaders(url, variables, &out.transport.headers));
  ASSIGN_OR_RETURN(out.transport.gzip, IsGzip(url, variables));
  ASSIGN_OR_RETURN(out.timeout_ns, TimeoutNs(url, variables));
  const auto encoding = url.parameters.find("encoding");
  out.json =
      encoding != url.parameters.end() ? encoding->second == "json" : Find(variables, "PROTOCOL").value == "http/json";
  return out;
}

}  // namespace tributary
