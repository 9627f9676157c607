#include "kernel-collector/direct/receiver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/ascii_case.h"
#include "base/status.h"
#include "base/version.h"
#include "kernel-collector/direct/printed_sender.h"
#include "otlp/json_limits.h"
#include "otlp/make_transport.h"
#include "otlp/otlp_logs_sender.h"
#include "otlp/otlp_profiles_sender.h"
#include "otlp/place.h"
#include "otlp/text_sender.h"

namespace tributary {
namespace {

constexpr uint16_t kHttpPort = 4318, kGrpcPort = 4317;

struct Scheme {
  std::string_view prefix;
  bool is_http, tls;
  uint16_t port, log_port;  // default ports of otlp_profiles and otlp_log
};
constexpr Scheme kSchemes[] = {
    {.prefix = "http://", .is_http = true, .tls = false, .port = kHttpPort, .log_port = kLogPort},
    {.prefix = "https://", .is_http = true, .tls = true, .port = kHttpPort, .log_port = kLogPort},
    {.prefix = "otlp+http://", .is_http = true, .tls = false, .port = kHttpPort, .log_port = kHttpPort},
    {.prefix = "otlp+https://", .is_http = true, .tls = true, .port = kHttpPort, .log_port = kHttpPort},
    {.prefix = "otlp://", .is_http = false, .tls = false, .port = kGrpcPort, .log_port = kGrpcPort},
    {.prefix = "otlps://", .is_http = false, .tls = true, .port = kGrpcPort, .log_port = kGrpcPort},
};

absl::Status Invalid(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }

// Removes the scheme from the start of `*host`. Returns null if it has none of these schemes.
const Scheme* TakeScheme(std::string_view* host) {
  for (const Scheme& scheme : kSchemes) {
    if (!EqualsIgnoringCase(host->substr(0, scheme.prefix.size()), scheme.prefix)) continue;
    host->remove_prefix(scheme.prefix.size());
    return &scheme;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<otlp::Transport>> TransportTo(const DirectReceiver& receiver,
                                                             const otlp::Settings& settings, const Clock& clock) {
  return otlp::MakeTransport(settings, receiver.otlp.signal,
                             receiver.otlp.is_http ? std::optional(receiver.path) : std::nullopt, clock);
}

}  // namespace

std::string DirectReceiver::ToString() const {
  if (is_console) return "console";
  const std::string_view scheme = otlp.is_http ? "http" : "grpc";
  return fmt::format("{}{}://{}{}", scheme, otlp.tls ? "s" : "", otlp.target, otlp.is_http ? path : "");
}

absl::StatusOr<DirectReceiver> ParseDirectReceiver(std::string_view encoder, std::string_view host, uint16_t given_port,
                                                   bool tls) {
  DirectReceiver out;
  out.is_console = encoder == "console";
  if (out.is_console) return out;
  const bool is_log = encoder == "otlp_log";
  out.otlp.signal = is_log ? otlp::kLogsSignal : otlp::kProfilesSignal;
  const Scheme bare{.prefix = "", .is_http = is_log, .tls = tls, .port = kGrpcPort, .log_port = kLogPort};
  const Scheme* given = TakeScheme(&host);
  const Scheme& scheme = given != nullptr ? *given : bare;
  if (tls && !scheme.tls) return Invalid("must begin with https:// or otlps://, because there are options for TLS");
  out.otlp.tls = scheme.tls;
  out.otlp.is_http = scheme.is_http;
  if (host.find('@') != host.npos) {
    return Invalid("must have no user name or password: use OTEL_EXPORTER_OTLP_HEADERS");
  }
  if (host.find('?') != host.npos) {
    return Invalid(
        "must have no parameters: use --otlp-generation for the generation, and the variables OTEL_EXPORTER_OTLP_* for "
        "other settings");
  }
  const uint16_t port = given_port != 0 ? given_port : is_log ? scheme.log_port : scheme.port;
  absl::StatusOr<otlp::Place> place = otlp::ParsePlace(host, fmt::format("{}", port));
  if (!place.ok()) {
    return WithContext(place.status(),
                       "must be HOST[:PORT], http://HOST[:PORT][/PATH] or the same with https://, otlp+http:// or "
                       "otlp+https://, otlp://HOST[:PORT] or otlps://HOST[:PORT]");
  }
  if (given != nullptr && place->path == "/") place->path.clear();
  if ((given == nullptr || !scheme.is_http) && !place->path.empty()) {
    return Invalid("must begin with http:// or https://, because it has a path");
  }
  out.otlp.target = std::move(place->target);
  if (out.otlp.is_http) {
    out.path = place->path.empty() ? std::string(out.otlp.signal.http_path) : std::move(place->path);
  }
  return out;
}

absl::StatusOr<DirectSender> MakeDirectSender(const DirectReceiver& receiver, const otlp::Variables& variables,
                                              const Clock& clock, Metrics& metrics) {
  DirectSender out;
  // Each request repeats all names, and mangled names are a tenth of its bytes.
  out.builder.linkage_names = false;
  out.builder.exact_bytes = false;  // OrderTables changes indices after they were counted
  out.builder.scope_version = std::string(kVersion);
  std::unique_ptr<otlp::ProfilesSender> printer;
  if (receiver.text) printer = std::make_unique<otlp::TextSender>(STDOUT_FILENO, *receiver.text);
  if (receiver.is_console) {
    TRIBUTARY_CHECK(printer != nullptr);
    out.builder.fold_interpreters = true;
    out.sender = std::move(printer);
    out.timeout_ns = otlp::kSendTimeoutNs;
    return out;
  }
  ASSIGN_OR_RETURN(const otlp::Settings settings, otlp::ResolveSettings(receiver.otlp, variables));
  out.timeout_ns = settings.timeout_ns;
  if (settings.encoding == otlp::Encoding::kJson) otlp::FitJson(&out.builder);
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, TransportTo(receiver, settings, clock));
  if (receiver.otlp.signal.name == otlp::kLogsSignal.name) {
    out.builder.size_of = otlp::ProfilesBuilder::SizeOf::kStackLogs;
    auto logs = std::make_unique<otlp::OtlpLogsSender>(std::move(transport), otlp::LogRecords::kStacks);
    out.events = logs.get();
    out.sender = std::move(logs);
  } else {
    out.builder.generation = settings.generation;
    out.sender = std::make_unique<otlp::OtlpProfilesSender>(std::move(transport), settings.generation);
  }
  if (printer != nullptr) {
    out.sender = std::make_unique<PrintedSender>(std::move(printer), std::move(out.sender), clock, metrics);
  }
  return out;
}

absl::StatusOr<DirectReceiver> MetricsReceiver(DirectReceiver receiver) {
  if (receiver.is_console) return Invalid("needs --intake-encoder otlp_profiles or otlp_log");
  const std::string_view path_of_signal = receiver.otlp.signal.http_path;
  receiver.otlp.signal = otlp::kMetricsSignal;
  if (!receiver.otlp.is_http) return receiver;
  if (!receiver.path.ends_with(path_of_signal)) {
    return Invalid(
        fmt::format("needs a receiver whose path ends with {}, because metrics are sent to the same path with "
                    "{} at its end. Change the path, or scrape the metrics (--metrics-listen)",
                    path_of_signal, otlp::kMetricsSignal.http_path));
  }
  receiver.path.resize(receiver.path.size() - path_of_signal.size());
  receiver.path += otlp::kMetricsSignal.http_path;
  return receiver;
}

absl::StatusOr<std::unique_ptr<otlp::MetricsExport>> MakeDirectMetrics(DirectReceiver receiver,
                                                                       const otlp::Variables& variables,
                                                                       std::string_view host_name, int64_t interval_ns,
                                                                       Metrics& metrics, const Clock& clock) {
  ASSIGN_OR_RETURN(receiver, MetricsReceiver(std::move(receiver)));
  ASSIGN_OR_RETURN(const otlp::Settings settings, otlp::ResolveSettings(receiver.otlp, variables));
  otlp::MetricsExport::Options options =
      otlp::MetricsExportOptions(settings, "tributary-kernel-collector", host_name, metrics);
  options.name = receiver.ToString();
  options.interval_ns = interval_ns;
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, TransportTo(receiver, settings, clock));
  return std::make_unique<otlp::MetricsExport>(std::move(options), metrics, std::move(transport), clock);
}

}  // namespace tributary
