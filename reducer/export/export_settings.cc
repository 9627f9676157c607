#include "reducer/export/export_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii_case.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

using otlp::FindVariable;
using otlp::Keyword;
using otlp::Protocol;
using otlp::Variable;

constexpr int64_t kDefaultIntervalNs = 60 * kNsPerSecond;  // OpenTelemetry's default

absl::Status Invalid(const Variable& variable, std::string_view must) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("{} must {}", variable.name, must));
}

// Parses a URL that was made from the variable, and then with the `query` that the user wrote.
absl::StatusOr<ExportUrl> ParseEndpoint(const Variable& variable, std::string_view url, std::string_view query) {
  absl::StatusOr<ExportUrl> out = ParseExportUrlPlainly(url);
  if (!out.ok()) return WithContext(out.status(), variable.name);
  return query.empty() ? out : ParseExportUrlPlainly(fmt::format("{}{}", url, query));
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
absl::StatusOr<ExportUrl> GrpcUrl(const Variable& variable, const otlp::Signal& signal,
                                  const ExportVariables& variables, std::string_view query) {
  std::string_view endpoint = variable.value;
  std::optional<bool> tls = TakeScheme(&endpoint);
  if (!tls) tls = Keyword(variables, signal, "INSECURE", {"true", "false"}) != "true";
  return ParseEndpoint(variable, fmt::format("{}{}", *tls ? "otlps://" : "otlp://", endpoint), query);
}

// The endpoint for all signals is a base, to which the signal's path is added. The endpoint for one signal is used as
// it is; without a path, its path is "/".
absl::StatusOr<ExportUrl> HttpUrl(const Variable& variable, const otlp::Signal& signal, std::string_view query) {
  std::string_view endpoint = variable.value;
  const std::optional<bool> tls = TakeScheme(&endpoint);
  if (!tls) return Invalid(variable, "be an http:// or https:// URL");
  const size_t slash = std::min(endpoint.find('/'), endpoint.size());
  std::string authority(endpoint.substr(0, slash)), path(endpoint.substr(slash));
  if (authority.rfind(':') == std::string::npos || authority.ends_with(']')) authority += *tls ? ":443" : ":80";
  if (!variable.is_per_signal) {
    while (path.ends_with('/')) path.pop_back();
    path += signal.http_path;
  }
  const std::string_view scheme = *tls ? "otlp+https://" : "otlp+http://";
  ASSIGN_OR_RETURN(ExportUrl url, ParseEndpoint(variable, fmt::format("{}{}{}", scheme, authority, path), query));
  if (path.size() <= 1) {
    url.path.assign(1, '/');  // GCC 12 warns of a plain assignment here
    const auto name = url.parameters.find("name");
    url.cursor_name =
        CursorName(fmt::format("{}{}/", scheme, url.target), signal, name == url.parameters.end() ? "" : name->second);
  }
  return url;
}

absl::StatusOr<int64_t> IntervalNs(const ExportUrl& url, const ExportVariables& variables) {
  if (const auto it = url.parameters.find("interval"); it != url.parameters.end()) return ParseDurationNs(it->second);
  const auto it = variables.find(std::string(kMetricIntervalVariable));
  if (it == variables.end() || it->second.empty()) return kDefaultIntervalNs;
  const std::optional<int64_t> ms = ParseNumber<int64_t>(it->second);
  if (!ms || *ms <= 0) {
    otlp::WarnOfIgnored({it->first, it->second}, "a number of milliseconds above 0");
    return kDefaultIntervalNs;
  }
  return std::clamp(*ms, kExportIntervalMinNs / kNsPerMs, kExportIntervalMaxNs / kNsPerMs) * kNsPerMs;
}

}  // namespace

absl::StatusOr<ExportUrl> ResolveExportUrl(std::string_view text, const ExportVariables& variables) {
  const size_t question = std::min(text.find('?'), text.size());
  const std::string_view query = text.substr(question);
  if (text.substr(0, question) != "otlp") return ParseExportUrl(text);
  // The signal decides which variables count. A URL with this scheme may have all parameters.
  const absl::StatusOr<ExportUrl> any = ParseExportUrlPlainly(fmt::format("otlp+https://host{}", query));
  if (!any.ok()) return WithContext(any.status(), fmt::format("export to {}", ShownExportUrl(text)));
  const otlp::Signal& signal = any->signal;
  const bool is_grpc = Protocol(variables, signal) == "grpc";
  Variable endpoint = FindVariable(variables, signal, "ENDPOINT");
  if (endpoint.value.empty()) {
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", is_grpc ? "http://localhost:4317" : "http://localhost:4318"};
  }
  if (endpoint.value.find('?') != endpoint.value.npos) return Invalid(endpoint, "be a URL without a question mark");
  if (endpoint.value.find('@') != endpoint.value.npos) {
    return Invalid(endpoint, "have no user name or password: use OTEL_EXPORTER_OTLP_HEADERS");
  }
  return is_grpc ? GrpcUrl(endpoint, signal, variables, query) : HttpUrl(endpoint, signal, query);
}

absl::StatusOr<std::vector<ExportUrl>> ResolveExportUrls(const std::vector<std::string>& texts,
                                                         const ExportVariables& variables) {
  std::vector<ExportUrl> urls;
  for (const std::string& text : texts) {
    const std::string option = fmt::format("--export {}", ShownExportUrl(text));  // the URL may contain a password
    absl::StatusOr<ExportUrl> url = ResolveExportUrl(text, variables);
    if (!url.ok()) return WithContext(url.status(), option);
    if (std::any_of(urls.begin(), urls.end(), [&](const ExportUrl& u) { return u.cursor_name == url->cursor_name; })) {
      return Error(
          absl::StatusCode::kInvalidArgument,
          fmt::format("{}: another --export has the same receiver and would share its cursor, so each of them could "
                      "miss samples: add the parameter name=NAME to one of the URLs",
                      option));
    }
    urls.push_back(*std::move(url));
  }
  return urls;
}

absl::StatusOr<OtlpSettings> ResolveOtlpSettings(const ExportUrl& url, const ExportVariables& variables) {
  OtlpSettings out;
  ASSIGN_OR_RETURN(static_cast<otlp::Settings&>(out),
                   otlp::ResolveSettings({.target = url.target,
                                          .tls = url.tls,
                                          .is_http = url.kind == ExportUrl::Kind::kOtlpHttp,
                                          .signal = url.signal,
                                          .parameters = url.parameters},
                                         variables));
  if (url.signal.name == otlp::kMetricsSignal.name) {
    ASSIGN_OR_RETURN(out.interval_ns, IntervalNs(url, variables));
  }
  return out;
}

}  // namespace tributary
