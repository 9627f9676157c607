#include "kernel-collector/destination_options.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/parse.h"
#include "base/status.h"
#include "base/types.h"
#include "intake/credentials/intake_options.h"
#include "kernel-collector/option_checks.h"
#include "otlp/generation.h"

namespace tributary {
namespace {

// The encoder decides which of the two forms is the right one.
absl::Status CheckHost(std::string_view value) {
  return value.find("://") != value.npos ? ParseDirectReceiver("otlp_profiles", value, 0, /*tls=*/false).status()
                                         : intake::ParseReducers(value, 1).status();
}

// Parses the switches of the text on standard output.
absl::StatusOr<otlp::TextOptions> ParseConsole(std::string_view switches) {
  return otlp::ParseTextOptions(switches, {.layout = otlp::TextLayout::kCollector});
}

// Other encoders have no generations. They accept the default, because --print-config writes it into a file.
absl::Status TakeGeneration(const std::string& generation, CollectorOptions& options) {
  if (options.intake_encoder == "otlp_profiles") {
    options.receiver.otlp.parameters["generation"] = generation;
    return absl::OkStatus();
  }
  if (otlp::ParseGeneration(generation) == otlp::Generation::kNewest) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "--otlp-generation: needs --intake-encoder otlp_profiles");
}

// Adds the settings of an exporter in a Collector's configuration.
void AddSettings(const ReceiverSettings& settings, otlp::Receiver& receiver) {
  receiver.parameters.insert(settings.parameters.begin(), settings.parameters.end());
  if (!settings.headers.empty()) receiver.headers = settings.headers;
}

}  // namespace

void DestinationOptionTable::AddTo(Options& table, CollectorOptions& options) {
  table.Add(
      {.name = "intake-host",
       .help = "host of the reducer, or HOST:PORT; to use several reducers, separate them with commas: each node sends "
               "to one of them, chosen by the node id, and to another one while the chosen reducer does not answer; "
               "with the encoders otlp_profiles and otlp_log, a receiver of OTLP: HOST, HOST:PORT, "
               "http://HOST[:PORT][/PATH], https://…, otlp://HOST[:PORT] (gRPC) or otlps://…",
       .value_name = "HOST",
       .check = CheckHost},
      &hosts_, "127.0.0.1");
  table.Add({.name = "intake-port",
             .help = "port of each reducer, or of the receiver of OTLP, that --intake-host names without a port; with "
                     "the encoder otlp_profiles, the default is 4318 for a URL, and 4317 for a host",
             .value_name = "PORT"},
            &port_, 8000, 1, 65'535);
  table.Add(
      {.name = "intake-encoder",
       .help = "format in which samples are sent; binary: to reducers; without a reducer: otlp_profiles: as OTLP "
               "profiles, over gRPC, or HTTP if --intake-host is an http URL; otlp_log: as OTLP logs, over HTTP, or "
               "gRPC if it is an otlp:// URL; "
               "console: as text on standard output",
       .value_name = "NAME",
       .values = {"binary", "otlp_profiles", "otlp_log", "console"}},
      &options.intake_encoder, "binary");
  table.Add({.name = "console",
             .help = "without a reducer: print samples on standard output, with these switches: layout=collector or "
                     "layout=lazybackend, and those of docs/export.md; the encoder console prints them instead of "
                     "sending, and the other encoders print every sample that they send",
             .value_name = "SWITCH=VALUE&SWITCH=VALUE",
             .check = [](std::string_view v) { return ParseConsole(v).status(); }},
            &console_, "");
  table.Add({.name = "otlp-generation",
             .help = "version of the protocol in which the encoder otlp_profiles sends; older receivers read newer "
                     "profiles as empty or wrong: Collectors need 1.7 from v0.128 on, 1.8 from v0.136 on, 1.9 from "
                     "v0.140 on, and 1.10 from v0.148 on; 1.11 is the same as 1.10",
             .value_name = "VERSION",
             .values = {"1.7", "1.8", "1.9", "1.10", "1.11"}},
            &generation_, "1.10");
  table.Add({.name = "names",
             .help = "without a reducer: look up the names of functions on this node; if false, frames have only "
                     "addresses, and the collector needs less CPU time and memory"},
            &options.names, true);
  table.Add(
      {.name = "names-memory-max",
       .help = "without a reducer: largest amount of memory for the symbol tables with which functions are named, "
               "1MiB to 4GiB; when it is full, the tables that were not used for the longest time are dropped",
       .value_name = "SIZE",
       .check = [](std::string_view v) { return CheckBytes(v, 1 << 20, int64_t{1} << 32, "1MiB to 4GiB"); }},
      &names_memory_, "64MiB");
  table.Add({.name = "otlp-metrics-interval",
             .help = "with the encoders otlp_profiles and otlp_log: how often the collector sends its own metrics to "
                     "the receiver, as OTLP metrics, 1s to 1h; 0s: never",
             .value_name = "DURATION",
             .check =
                 [](std::string_view v) {
                   return ParseDurationNs(v).value_or(-1) == 0
                              ? absl::OkStatus()
                              : CheckDuration(v, kNsPerSecond, 60 * kNsPerMinute, "1s to 1h, or 0s");
                 }},
            &metrics_interval_, "0s");
}

absl::Status DestinationOptionTable::TakeReceiver(const Options& table, const Options::Environment& environment,
                                                  const std::optional<ReceiverSettings>& settings,
                                                  CollectorOptions& options) const {
  const uint16_t port = table.IsGiven("intake-port") ? static_cast<uint16_t>(port_) : uint16_t{0};
  for (const auto& [name, value] : environment) {
    if (name.starts_with("OTEL_EXPORTER_OTLP_")) options.otlp_variables.emplace(name, value);
  }
  const IntakeCredentialOptions& credentials = options.credentials;
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver(options.intake_encoder, hosts_, port, credentials.tls);
  if (!receiver.ok()) return WithContext(receiver.status(), "--intake-host");
  options.receiver = *std::move(receiver);
  if (options.receiver.is_console || !console_.empty()) {
    ASSIGN_OR_RETURN(options.receiver.text, ParseConsole(console_));
  }
  if (options.receiver.is_console) {
    if (!options.spool_dir.empty()) {
      options.warnings.push_back("--spool-dir: is not used, because printed samples do not wait for a receiver");
    }
    return absl::OkStatus();
  }
  if (!credentials.token_file.empty() || !credentials.tls_server_name.empty()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "--intake-token-file and --tls-server-name are for reducers; a receiver of OTLP gets the headers of "
                 "OTEL_EXPORTER_OTLP_HEADERS");
  }
  auto& parameters = options.receiver.otlp.parameters;
  if (!credentials.tls_ca.empty()) parameters["tls_ca"] = credentials.tls_ca;
  if (!credentials.tls_cert.empty()) {
    parameters["tls_cert"] = credentials.tls_cert;
    parameters["tls_key"] = credentials.tls_key;
  }
  if (settings) AddSettings(*settings, options.receiver.otlp);
  return absl::OkStatus();
}

absl::Status DestinationOptionTable::Take(const Options& table, const Options::Environment& environment,
                                          const std::optional<ReceiverSettings>& settings,
                                          CollectorOptions& options) const {
  ASSIGN_OR_RETURN(options.names_memory_bytes, ParseBytes(names_memory_));
  if (options.sends_to_reducers()) {
    absl::StatusOr<std::vector<HostPort>> reducers = intake::ParseReducers(hosts_, static_cast<uint16_t>(port_));
    if (!reducers.ok()) return WithContext(reducers.status(), "--intake-host");
    options.reducers = *std::move(reducers);
    if (!console_.empty()) {
      options.warnings.push_back(
          "--console: has no effect with a reducer; start the reducer with --export console (docs/export.md)");
    }
  } else {
    RETURN_IF_ERROR(TakeReceiver(table, environment, settings, options));
  }
  RETURN_IF_ERROR(TakeGeneration(generation_, options));
  ASSIGN_OR_RETURN(options.metrics_interval_ns, ParseDurationNs(metrics_interval_));
  if (options.metrics_interval_ns > 0 && (options.sends_to_reducers() || options.receiver.is_console)) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "--otlp-metrics-interval: needs --intake-encoder otlp_profiles or otlp_log");
  }
  return absl::OkStatus();
}

OptionValue ValueOf(const std::optional<ReceiverSettings>& settings) {
  std::string text;
  if (settings) {
    for (const auto& [name, value] : settings->parameters) text += fmt::format("{}={}\n", name, value);
    for (const auto& [name, value] : settings->headers) text += fmt::format("{}: {}\n", name, value);
  }
  return {.name = "config-exporters", .text = fmt::format("{}", std::hash<std::string>()(text))};
}

}  // namespace tributary
