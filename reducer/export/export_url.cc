#include "reducer/export/export_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/log.h"
#include "base/parse.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr std::string_view kOtlpPort = "4317";

absl::Status Invalid(std::string_view url, std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("export to {}: {}; allowed are otlp://HOST[:PORT][?signal=profiles], the same with otlps:// "
                           "for TLS, and console[?layout=lazybackend|collector]",
                           EscapeForDisplay(url), why));
}

// Accepts a name, an IPv4 address, or an IPv6 address in brackets, optionally with its interface.
bool IsHost(std::string_view host) {
  auto name = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_'; };
  auto address = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == ':' || c == '.' || c == '%'; };
  if (host.size() > 253 || host.empty()) return false;
  if (host.front() != '[') return std::all_of(host.begin(), host.end(), name);
  return host.size() > 2 && host.back() == ']' && std::all_of(host.begin() + 1, host.end() - 1, address);
}

absl::Status ParsePlace(std::string_view url, std::string_view place, ExportUrl* out) {
  if (place.ends_with('/')) place.remove_suffix(1);
  std::string_view host = place, port = kOtlpPort;
  size_t colon = place.rfind(':');
  if (colon != place.npos && place.find(']', colon) == place.npos) {
    host = place.substr(0, colon);
    port = place.substr(colon + 1);
  }
  if (!IsHost(host)) return Invalid(url, "the host name is malformed");
  absl::StatusOr<HostPort> parsed = ParseHostPort(fmt::format("{}:{}", host, port));
  if (!parsed.ok() || parsed->port == 0) return Invalid(url, "the port must be 1 to 65535");
  out->target = fmt::format("{}:{}", host, parsed->port);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExportUrl> ParseExportUrl(std::string_view url) {
  ExportUrl out;
  size_t question = url.find('?');
  std::string_view place = url.substr(0, question);
  std::string_view key, value;
  if (question != url.npos) {
    std::string_view query = url.substr(question + 1);
    size_t equals = query.find('=');
    if (equals == query.npos) return Invalid(url, "the question mark must be followed by KEY=VALUE");
    key = query.substr(0, equals);
    value = query.substr(equals + 1);
  }
  if (place == "console") {
    if (key == "layout" && value == "collector") {
      out.layout = otlp::TextLayout::kCollector;
    } else if (!key.empty() && !(key == "layout" && value == "lazybackend")) {
      return Invalid(url, "unknown layout");
    }
    out.cursor_name = "console";
    return out;
  }
  constexpr std::string_view kClear = "otlp://", kTls = "otlps://";
  out.kind = ExportUrl::Kind::kOtlp;
  out.tls = place.starts_with(kTls);
  if (!out.tls && !place.starts_with(kClear)) return Invalid(url, "unknown scheme");
  RETURN_IF_ERROR(ParsePlace(url, place.substr(out.tls ? kTls.size() : kClear.size()), &out));
  if (key == "signal" && value == "logs") {
    return Error(
        absl::StatusCode::kUnimplemented,
        fmt::format("export to {}: signal=logs is not supported, only signal=profiles", EscapeForDisplay(url)));
  }
  if (!key.empty() && !(key == "signal" && value == "profiles")) return Invalid(url, "unknown option");
  out.cursor_name = fmt::format("{}{}", out.tls ? kTls : kClear, out.target);
  return out;
}

}  // namespace tributary
