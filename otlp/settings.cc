#include "otlp/settings.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/number.h"
#include "base/parse.h"
#include "base/secret_file.h"
#include "base/status.h"
#include "base/types.h"
#include "base/version.h"
#include "otlp/sender.h"

namespace tributary::otlp {
namespace {

constexpr int64_t kTimeoutMsMax = 600'000;
constexpr size_t kHeadersFileBytesMax = 512u << 10;  // room for kHeadersMax headers of kHeaderBytesMax, and comments

absl::StatusOr<Headers> ReadHeaders(const Receiver& receiver, const Variables& variables) {
  if (receiver.headers) return *receiver.headers;
  if (const auto file = receiver.parameters.find("headers_file"); file != receiver.parameters.end()) {
    if (file->second.empty()) return Headers{};
    ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(file->second, kHeadersFileBytesMax));
    absl::StatusOr<Headers> parsed = ParseHeaderFile(text);
    if (!parsed.ok()) return WithContext(parsed.status(), file->second);
    return parsed;
  }
  const Variable variable = FindVariable(variables, receiver.signal, "HEADERS");
  absl::StatusOr<Headers> parsed = ParseHeaderList(variable.value);
  if (!parsed.ok()) return WithContext(parsed.status(), variable.name);
  return parsed;
}

void FillTls(const Receiver& receiver, const Variables& variables, TlsFiles* files) {
  const auto variable = [&](std::string_view suffix) {
    return std::string(FindVariable(variables, receiver.signal, suffix).value);
  };
  const auto ca = receiver.parameters.find("tls_ca");
  files->ca = ca != receiver.parameters.end() ? ca->second : variable("CERTIFICATE");
  // The certificate and its key come from the same place.
  const bool in_url = receiver.parameters.contains("tls_cert");
  files->cert = in_url ? receiver.parameters.find("tls_cert")->second : variable("CLIENT_CERTIFICATE");
  files->key = in_url ? receiver.parameters.find("tls_key")->second : variable("CLIENT_KEY");
}

bool IsGzip(const Receiver& receiver, const Variables& variables) {
  const auto it = receiver.parameters.find("compression");
  const std::string value = it != receiver.parameters.end()
                                ? it->second
                                : Keyword(variables, receiver.signal, "COMPRESSION", {"gzip", "none"});
  return value != "none";
}

Encoding EncodingOf(const Receiver& receiver, const Variables& variables) {
  if (!receiver.is_http) return Encoding::kProtobuf;
  const auto it = receiver.parameters.find("encoding");
  const bool is_json =
      it != receiver.parameters.end() ? it->second == "json" : Protocol(variables, receiver.signal) == "http/json";
  return is_json ? Encoding::kJson : Encoding::kProtobuf;
}

absl::StatusOr<int64_t> TimeoutNs(const Receiver& receiver, const Variables& variables) {
  if (const auto it = receiver.parameters.find("timeout"); it != receiver.parameters.end())
    return ParseDurationNs(it->second);
  const Variable variable = FindVariable(variables, receiver.signal, "TIMEOUT");
  if (variable.value.empty()) return kSendTimeoutNs;
  const std::optional<int64_t> ms = ParseNumber<int64_t>(variable.value);
  if (!ms || *ms < 0) {
    WarnOfIgnored(variable, "a number of milliseconds");
    return kSendTimeoutNs;
  }
  return (*ms == 0 ? kTimeoutMsMax : std::min(*ms, kTimeoutMsMax)) * kNsPerMs;  // 0: no limit
}

}  // namespace

absl::StatusOr<Settings> ResolveSettings(const Receiver& receiver, const Variables& variables) {
  Settings out;
  out.transport.target = receiver.target;
  out.transport.tls = receiver.tls;
  out.transport.version = std::string(kVersion);
  if (receiver.tls) FillTls(receiver, variables, &out.transport.tls_files);
  ASSIGN_OR_RETURN(out.transport.headers, ReadHeaders(receiver, variables));
  out.transport.gzip = IsGzip(receiver, variables);
  ASSIGN_OR_RETURN(out.timeout_ns, TimeoutNs(receiver, variables));
  out.encoding = EncodingOf(receiver, variables);
  if (const auto it = receiver.parameters.find("generation"); it != receiver.parameters.end()) {
    out.generation = ParseGeneration(it->second).value_or(Generation::kNewest);
  }
  return out;
}

}  // namespace tributary::otlp
