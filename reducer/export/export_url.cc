#include "reducer/export/export_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "base/log.h"
#include "base/parse.h"
#include "base/percent.h"
#include "base/status.h"
#include "base/types.h"
#include "otlp/transport.h"

namespace tributary {
namespace {

constexpr size_t kPathBytesMax = 2048;

struct Scheme {
  std::string_view prefix, port;
  ExportUrl::Kind kind;
  bool tls;
};
constexpr std::array<Scheme, 4> kSchemes = {{{"otlp://", "4317", ExportUrl::Kind::kOtlpGrpc, false},
                                             {"otlps://", "4317", ExportUrl::Kind::kOtlpGrpc, true},
                                             {"otlp+http://", "4318", ExportUrl::Kind::kOtlpHttp, false},
                                             {"otlp+https://", "4318", ExportUrl::Kind::kOtlpHttp, true}}};

absl::Status Invalid(std::string_view url, std::string_view why) {
  return Error(
      absl::StatusCode::kInvalidArgument,
      fmt::format("export to {}: {}; allowed are otlp://HOST[:PORT] (gRPC), otlp+http://HOST[:PORT][/PATH], otlps:// "
                  "and otlp+https:// for TLS, each with [?PARAMETER=VALUE&…]; otlp, which takes the URL from the "
                  "variables OTEL_EXPORTER_OTLP_*; and console[?layout=lazybackend|collector]",
                  ShownExportUrl(url), why));
}

// Accepts a name, an IPv4 address, or an IPv6 address in brackets, optionally with its interface.
bool IsHost(std::string_view host) {
  auto name = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_'; };
  auto address = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == ':' || c == '.' || c == '%'; };
  if (host.size() > 253 || host.empty()) return false;
  if (host.front() != '[') return std::all_of(host.begin(), host.end(), name);
  return host.size() > 2 && host.back() == ']' && std::all_of(host.begin() + 1, host.end() - 1, address);
}

bool IsPath(std::string_view path) {
  return path.size() <= kPathBytesMax &&
         std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '#' && c != '\\'; });
}

absl::Status ParsePlace(std::string_view url, std::string_view place, std::string_view default_port, ExportUrl* out) {
  if (place.find('@') != place.npos) {
    return Invalid(url,
                   "a user name or password must not be in the URL: write the header Authorization into a file, and "
                   "name the file with headers_file=FILE");
  }
  const size_t slash = std::min(place.find('/'), place.size());
  out->path = place.substr(slash);
  place = place.substr(0, slash);
  std::string_view host = place, port = default_port;
  size_t colon = place.rfind(':');
  if (colon != place.npos && place.find(']', colon) == place.npos) {
    host = place.substr(0, colon);
    port = place.substr(colon + 1);
  }
  if (!IsHost(host)) return Invalid(url, "the host name is malformed");
  absl::StatusOr<HostPort> parsed = ParseHostPort(fmt::format("{}:{}", host, port));
  if (!parsed.ok() || parsed->port == 0) return Invalid(url, "the port must be 1 to 65535");
  out->target = fmt::format("{}:{}", host, parsed->port);
  const bool has_path = out->path.size() > 1;
  if (out->kind == ExportUrl::Kind::kOtlpHttp) {
    if (!IsPath(out->path)) return Invalid(url, "the path must be shorter, and percent-encoded");
    if (!has_path) out->path = otlp::kProfilesSignal.http_path;
  } else {
    if (has_path) return Invalid(url, "a URL for gRPC has no path");
    out->path.clear();
  }
  return absl::OkStatus();
}

// Returns "" if the value is allowed, and otherwise what is wrong.
std::string_view CheckParameter(const ExportUrl& url, std::string_view key, std::string_view value) {
  if (key == "signal") return value == "profiles" ? "" : "signal must be profiles";
  if (key == "compression") return value == "gzip" || value == "none" ? "" : "compression must be gzip or none";
  if (key == "timeout") {
    const absl::StatusOr<int64_t> ns = ParseDurationNs(value);
    return ns.ok() && *ns >= kNsPerMs && *ns <= 10 * kNsPerMinute ? "" : "timeout must be 1ms to 10m";
  }
  if (key == "headers_file") return value.empty() ? "headers_file must name a file" : "";
  if (key == "encoding") {
    if (url.kind != ExportUrl::Kind::kOtlpHttp) return "gRPC has no parameter encoding: use otlp+http://";
    return value == "protobuf" || value == "json" ? "" : "encoding must be protobuf or json";
  }
  if (key == "tls_ca" || key == "tls_cert" || key == "tls_key") {
    if (!url.tls) return "tls_ca, tls_cert and tls_key need otlps:// or otlp+https://";
    return value.empty() ? "tls_ca, tls_cert and tls_key must name files" : "";
  }
  return "a parameter is unknown; the parameters are signal, encoding, compression, timeout, headers_file, tls_ca, "
         "tls_cert and tls_key";
}

absl::Status ParseParameters(std::string_view url, std::string_view query, ExportUrl* out) {
  while (true) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    const size_t equals = item.find('=');
    if (equals == item.npos) return Invalid(url, "the question mark must be followed by PARAMETER=VALUE");
    std::string key = PercentDecoded(item.substr(0, equals)), value = PercentDecoded(item.substr(equals + 1));
    if (key == "signal" && (value == "logs" || value == "metrics")) {
      return Error(
          absl::StatusCode::kUnimplemented,
          fmt::format("export to {}: signal={} is not supported, only signal=profiles", ShownExportUrl(url), value));
    }
    if (const std::string_view wrong = CheckParameter(*out, key, value); !wrong.empty()) return Invalid(url, wrong);
    if (!out->parameters.emplace(std::move(key), std::move(value)).second) {
      return Invalid(url, "a parameter is given twice");
    }
    if (end == query.size()) break;
    query.remove_prefix(end + 1);
  }
  if (out->parameters.contains("tls_cert") != out->parameters.contains("tls_key")) {
    return Invalid(url, "tls_cert and tls_key need each other");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShownExportUrl(std::string_view url) {
  std::string shown(url);
  if (const size_t at = shown.rfind('@'); at != std::string::npos) {
    const size_t scheme = shown.find("://");
    const size_t begin = scheme == std::string::npos || scheme > at ? 0 : scheme + 3;
    shown.replace(begin, at - begin, "***");
  }
  if (const size_t question = shown.find('?'); question != std::string::npos)
    shown.replace(question + 1, shown.npos, "...");
  return EscapeForDisplay(shown);
}

absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url) {
  ExportUrl out;
  const size_t question = url.find('?');
  const std::string_view place = url.substr(0, question);
  const bool has_query = question != url.npos;
  const std::string_view query = has_query ? url.substr(question + 1) : "";
  if (place == "console") {
    if (query == "layout=collector") {
      out.layout = otlp::TextLayout::kCollector;
    } else if (has_query && query != "layout=lazybackend") {
      return Invalid(url, "unknown layout");
    }
    out.cursor_name = "console";
    return out;
  }
  for (const Scheme& scheme : kSchemes) {
    if (!place.starts_with(scheme.prefix)) continue;
    out.kind = scheme.kind;
    out.tls = scheme.tls;
    RETURN_IF_ERROR(ParsePlace(url, place.substr(scheme.prefix.size()), scheme.port, &out));
    if (has_query) RETURN_IF_ERROR(ParseParameters(url, query, &out));
    out.cursor_name = fmt::format("{}{}{}", scheme.prefix, out.target, out.path);
    return out;
  }
  return Invalid(url, "unknown scheme");
}

}  // namespace tributary
