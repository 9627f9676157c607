#include "reducer/export/export_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "base/parse.h"
#include "base/percent.h"
#include "base/status.h"
#include "base/types.h"
#include "otlp/generation.h"
#include "otlp/place.h"

namespace tributary {
namespace {

struct Scheme {
  std::string_view prefix, port;
  ExportUrl::Kind kind;
  bool tls;
};
constexpr std::array<Scheme, 4> kSchemes = {{{"otlp://", "4317", ExportUrl::Kind::kOtlpGrpc, false},
                                             {"otlps://", "4317", ExportUrl::Kind::kOtlpGrpc, true},
                                             {"otlp+http://", "4318", ExportUrl::Kind::kOtlpHttp, false},
                                             {"otlp+https://", "4318", ExportUrl::Kind::kOtlpHttp, true}}};

constexpr std::string_view kFileScheme = "file://";
constexpr size_t kNameBytesMax = 64;
constexpr std::string_view kForms =
    "otlp://HOST[:PORT] (gRPC), otlp+http://HOST[:PORT][/PATH], otlps:// and otlp+https:// for TLS, each with "
    "[?PARAMETER=VALUE&…]; otlp[?PARAMETER=VALUE&…], which takes the URL from the variables OTEL_EXPORTER_OTLP_*; "
    "console and file:///DIR, each with [?PARAMETER=VALUE&…]";

absl::Status Invalid(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }

absl::Status ParseReceiverPlace(std::string_view text, std::string_view default_port, ExportUrl* out) {
  ASSIGN_OR_RETURN(otlp::Place place, otlp::ParsePlace(text, default_port));
  out->target = std::move(place.target);
  out->path = std::move(place.path);
  if (out->path.size() <= 1) out->path.clear();
  if (out->kind != ExportUrl::Kind::kOtlpHttp && !out->path.empty()) return Invalid("a URL for gRPC has no path");
  return absl::OkStatus();
}

// The cursor of process events has the exporter's name and ".events" (EventExport).
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && !name.ends_with(".events") &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsUrlUnreserved(c) && c != '~'; });
}

const otlp::Signal* FindSignal(std::string_view name) {
  const auto found = std::ranges::find(otlp::kSignals, name, &otlp::Signal::name);
  return found == otlp::kSignals.end() ? nullptr : &*found;
}

// Returns "" if the value is allowed, and otherwise what is wrong.
std::string_view CheckParameter(const ExportUrl& url, std::string_view key, std::string_view value) {
  if (key == "name")
    return IsName(value) ? "" : "name must be 1 to 64 letters, digits, '-', '_' and '.', without .events at its end";
  const bool is_otlp = url.kind == ExportUrl::Kind::kOtlpGrpc || url.kind == ExportUrl::Kind::kOtlpHttp;
  if (key == "generation") {
    if (!is_otlp) return "generation is for receivers of OTLP profiles: use otlp:// or otlp+http://";
    return otlp::ParseGeneration(value) ? "" : "generation must be 1.7, 1.8, 1.9, 1.10 or 1.11";
  }
  if (url.kind == ExportUrl::Kind::kConsole) {
    otlp::TextOptions ignored;
    return otlp::SetTextOption(key, value, &ignored);
  }
  if (url.kind == ExportUrl::Kind::kFile) {
    FileOptions ignored;
    return SetFileOption(key, value, &ignored);
  }
  if (key == "signal") return FindSignal(value) != nullptr ? "" : "signal must be profiles, logs or metrics";
  if (key == "samples") return value == "aggregated" || value == "single" ? "" : "samples must be aggregated or single";
  if (key == "compression") return value == "gzip" || value == "none" ? "" : "compression must be gzip or none";
  if (key == "timeout") {
    const absl::StatusOr<int64_t> ns = ParseDurationNs(value);
    return ns.ok() && *ns >= kNsPerMs && *ns <= 10 * kNsPerMinute ? "" : "timeout must be 1ms to 10m";
  }
  if (key == "interval") {
    const absl::StatusOr<int64_t> ns = ParseDurationNs(value);
    return ns.ok() && *ns >= kExportIntervalMinNs && *ns <= kExportIntervalMaxNs ? "" : "interval must be 1s to 1h";
  }
  if (key == "headers_file") return "";
  if (key == "encoding") {
    if (url.kind != ExportUrl::Kind::kOtlpHttp) return "gRPC has no parameter encoding: use otlp+http://";
    return value == "protobuf" || value == "json" ? "" : "encoding must be protobuf or json";
  }
  if (key == "tls_ca" || key == "tls_cert" || key == "tls_key") {
    if (!url.tls) return "tls_ca, tls_cert and tls_key need otlps:// or otlp+https://";
    return value.empty() ? "tls_ca, tls_cert and tls_key must name files" : "";
  }
  return "a parameter is unknown; the parameters are signal, samples, interval, name, encoding, generation, "
         "compression, timeout, headers_file, tls_ca, tls_cert and tls_key";
}

absl::Status ParseParameters(std::string_view query, ExportUrl* out) {
  while (true) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    const size_t equals = item.find('=');
    if (equals == item.npos) return Invalid("the question mark must be followed by PARAMETER=VALUE");
    std::string key = PercentDecoded(item.substr(0, equals)), value = PercentDecoded(item.substr(equals + 1));
    if (const std::string_view wrong = CheckParameter(*out, key, value); !wrong.empty()) return Invalid(wrong);
    if (key == "signal") out->signal = *FindSignal(value);
    if (!out->parameters.emplace(std::move(key), std::move(value)).second) {
      return Invalid("a parameter is given twice");
    }
    if (end == query.size()) break;
    query.remove_prefix(end + 1);
  }
  if (out->parameters.contains("tls_cert") != out->parameters.contains("tls_key")) {
    return Invalid("tls_cert and tls_key need each other");
  }
  const auto interval = out->parameters.find("interval");
  if (interval != out->parameters.end() && out->signal.name != otlp::kMetricsSignal.name &&
      !ParseExportInterval(interval->second).ok()) {
    return Invalid("interval must be 1s to 5m, except for metrics");
  }
  if (out->parameters.contains("samples") && out->signal.name == otlp::kMetricsSignal.name) {
    return Invalid("metrics have no parameter samples");
  }
  if (out->parameters.contains("generation") && out->signal.name != otlp::kProfilesSignal.name) {
    return Invalid("generation is only for signal=profiles: logs and metrics are the same for all receivers");
  }
  return absl::OkStatus();
}

// Parses the URL up to the question mark. Returns the receiver for the name of the cursor, without the path.
absl::StatusOr<std::string> ParseReceiver(std::string_view text, ExportUrl* out) {
  if (text == "console") return "console";
  if (text.starts_with(kFileScheme)) {
    out->kind = ExportUrl::Kind::kFile;
    ASSIGN_OR_RETURN(out->file.directory, ParseFileDirectory(text.substr(kFileScheme.size())));
    return fmt::format("{}{}", kFileScheme, out->file.directory);
  }
  for (const Scheme& scheme : kSchemes) {
    if (!text.starts_with(scheme.prefix)) continue;
    out->kind = scheme.kind;
    out->tls = scheme.tls;
    RETURN_IF_ERROR(ParseReceiverPlace(text.substr(scheme.prefix.size()), scheme.port, out));
    return fmt::format("{}{}", scheme.prefix, out->target);
  }
  return Invalid("unknown scheme");
}

}  // namespace

std::string ShownExportUrl(std::string_view url) {
  std::string shown(url);
  const size_t at = shown.rfind('@'), question = shown.find('?'), scheme = shown.find("://");
  if (at != std::string::npos) {
    const size_t begin = scheme < std::min(at, question) ? scheme + 3 : 0;
    // If a question mark comes before the '@', either of them may belong to a secret.
    shown.replace(begin, question < at ? shown.npos : at - begin, "***");
  }
  if (const size_t end = shown.find('?'); end != shown.npos) shown.replace(end + 1, shown.npos, "...");
  return EscapeForDisplay(shown);
}

absl::StatusOr<int64_t> ParseExportInterval(std::string_view text) {
  const absl::StatusOr<int64_t> ns = ParseDurationNs(text);
  if (ns.ok() && *ns >= kNsPerSecond && *ns <= 5 * kNsPerMinute) return ns;
  return Invalid("must be a duration of 1s to 5m");
}

std::string CursorName(std::string_view receiver, const otlp::Signal& signal, std::string_view name) {
  // Cursors of earlier releases have only the receiver.
  std::string out(receiver);
  if (signal.name != otlp::kProfilesSignal.name) out += fmt::format("?signal={}", signal.name);
  if (!name.empty()) out += fmt::format("{}name={}", out.size() == receiver.size() ? '?' : '&', name);
  return out;
}

absl::StatusOr<ExportUrl> ParseExportUrlPlainly(std::string_view url) {
  ExportUrl out;
  const size_t question = url.find('?');
  ASSIGN_OR_RETURN(const std::string receiver, ParseReceiver(url.substr(0, question), &out));
  if (question != url.npos) RETURN_IF_ERROR(ParseParameters(url.substr(question + 1), &out));
  if (out.kind == ExportUrl::Kind::kOtlpHttp && out.path.empty()) out.path = out.signal.http_path;
  const auto& parameters = out.parameters;
  for (const auto& [key, value] : parameters) {
    if (out.kind == ExportUrl::Kind::kConsole) otlp::SetTextOption(key, value, &out.text);
    if (out.kind == ExportUrl::Kind::kFile) SetFileOption(key, value, &out.file);
  }
  const auto name = parameters.find("name");
  out.cursor_name = CursorName(receiver + out.path, out.signal, name == parameters.end() ? "" : name->second);
  return out;
}

absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url) {
  absl::StatusOr<ExportUrl> out = ParseExportUrlPlainly(url);
  if (out.ok()) return out;
  const absl::Status status = WithContext(out.status(), fmt::format("export to {}", ShownExportUrl(url)));
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return Invalid(fmt::format("{}; allowed are {}", Message(status), kForms));
}

}  // namespace tributary
