#include "reducer/http_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "base/parse.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int64_t kBytesMin = 16 << 20;
constexpr size_t kHeaderNameBytesMax = 128;

absl::Status CheckHeaderName(std::string_view text) {
  const auto is_name_byte = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (text.size() <= kHeaderNameBytesMax && std::all_of(text.begin(), text.end(), is_name_byte)) {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kInvalidArgument, "must be the name of a header, such as X-Forwarded-User");
}

void AddAddresses(Options& table, HttpTexts& texts) {
  table.Add({.name = "http-listen",
             .help = "address of the web page, the API and /metrics; PORT alone means 127.0.0.1:PORT; on other "
                     "addresses than loopback, callers must sign in",
             .value_name = "HOST:PORT",
             .check = CheckListen},
            &texts.listen, "127.0.0.1:4040");
  AddMetricsListen(table, "off", &texts.metrics);
}

// Options that decide who may do what (docs/security.md).
void AddAccess(Options& table, ReducerOptions& out, HttpTexts& texts) {
  table.Add({.name = "http-token-file",
             .help = "file of tokens for --http-listen, one per line: TOKEN RIGHT[,RIGHT] [NAME]; the rights are read, "
                     "send, upload and admin",
             .value_name = "FILE",
             .reloadable = true},
            &out.http_access.token_file, "");
  table.Add({.name = "http-tls-cert",
             .help = "PEM file of the certificate chain for --http-listen; if set, the page and the API have https:// "
                     "URLs",
             .value_name = "FILE",
             .reloadable = true},
            &out.http_tls_cert, "");
  table.Add({.name = "http-tls-key",
             .help = "PEM file of the private key for --http-tls-cert",
             .value_name = "FILE",
             .reloadable = true},
            &out.http_tls_key, "");
  table.Add({.name = "http-tls-ca",
             .help = "PEM file of the certificate authorities that sign certificates of callers; if set, callers may "
                     "sign in with such a certificate",
             .value_name = "FILE",
             .reloadable = true},
            &out.http_tls_ca, "");
  table.Add({.name = "http-proxy-from",
             .help = "addresses of proxies that sign users in: a range such as 10.1.0.0/16, or one address; requests "
                     "from there are of the user in --http-proxy-user-header; may be repeated",
             .value_name = "CIDR",
             .reloadable = true},
            &texts.proxies);
  table.Add({.name = "http-proxy-user-header",
             .help = "header in which the proxies of --http-proxy-from send the name of the user; ignored in the "
                     "requests of all other clients",
             .value_name = "NAME",
             .check = CheckHeaderName,
             .reloadable = true},
            &out.http_access.proxy_user_header, "");
  table.Add({.name = "http-user-rights",
             .help = "rights of users of proxies and certificates whose name matches the pattern (* is any characters, "
                     "? one character); the first match counts; the right 'none' means no right; users that match no "
                     "pattern may read; may be repeated",
             .value_name = "NAME-PATTERN=RIGHT[,RIGHT]",
             .reloadable = true},
            &texts.users);
  table.Add({.name = "allow-anonymous",
             .help = "let callers without a sign-in use --http-listen on addresses that are not loopback; they may "
                     "only read if there is a way to sign in, and otherwise do everything",
             .reloadable = true},
            &out.http_access.allow_anonymous, false);
}

void AddLimits(Options& table, ReducerOptions& out, HttpTexts& texts) {
  table.Add(
      {.name = "http-connections-max",
       .help = "largest number of connections to --http-listen; if there are more, the one that has waited longest "
               "for its client is closed",
       .value_name = "N"},
      &out.http_connections_max, ReducerOptions().http_connections_max, 1, 1'000'000);
  table.Add({.name = "http-connections-per-address-max",
             .help = "largest number of connections of one address to --http-listen; loopback addresses are exempt",
             .value_name = "N"},
            &out.http_connections_per_address_max, ReducerOptions().http_connections_per_address_max, 1, 1'000'000);
  table.Add({.name = "http-answer-bytes-max",
             .help = "largest amount of memory for answers that clients have not read yet; when it is reached, the "
                     "client that reads most slowly is disconnected",
             .value_name = "BYTES",
             .check = CheckBytes},
            &texts.answer_bytes, "256MiB");
}

absl::Status CheckTls(const ReducerOptions& options) {
  if (options.http_tls_cert.empty() != options.http_tls_key.empty()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "--http-tls-cert and --http-tls-key belong together: one is missing");
  }
  if (options.http_tls_cert.empty() && !options.http_tls_ca.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "--http-tls-ca needs --http-tls-cert and --http-tls-key");
  }
  return absl::OkStatus();
}

absl::Status TakeAccess(const HttpTexts& texts, AccessControl::Options& access) {
  for (const std::string& text : texts.proxies) {
    absl::StatusOr<IpRange> range = IpRange::Parse(text);
    if (!range.ok()) return WithContext(range.status(), "--http-proxy-from");
    access.proxies.push_back(*range);
  }
  for (const std::string& text : texts.users) {
    absl::StatusOr<AccessControl::UserRights> user = AccessControl::ParseUserRights(text);
    if (!user.ok()) return WithContext(user.status(), "--http-user-rights");
    access.users.push_back(*std::move(user));
  }
  if (access.proxies.empty() != access.proxy_user_header.empty()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "--http-proxy-from and --http-proxy-user-header belong together: one is missing");
  }
  if (!access.users.empty() && access.proxies.empty() && !access.certificates) {
    return Error(absl::StatusCode::kInvalidArgument, "--http-user-rights needs --http-proxy-from or --http-tls-ca");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckListen(std::string_view text) { return ParseListen(text).status(); }

absl::Status CheckBytes(std::string_view text) {
  absl::StatusOr<int64_t> bytes = ParseBytes(text);
  if (bytes.ok() && *bytes >= kBytesMin) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be a size of at least 16MiB");
}

void AddHttp(Options& table, ReducerOptions& out, HttpTexts& texts) {
  AddAddresses(table, texts);
  AddAccess(table, out, texts);
  AddLimits(table, out, texts);
}

absl::Status TakeHttp(const Options& table, const HttpTexts& texts, ReducerOptions& out) {
  ASSIGN_OR_RETURN(out.http_listen, ParseListen(texts.listen));
  ASSIGN_OR_RETURN(out.metrics_listen, TakeMetricsListen(table, texts.metrics));
  ASSIGN_OR_RETURN(const int64_t answer_bytes, ParseBytes(texts.answer_bytes));
  out.http_answer_bytes_max = static_cast<uint64_t>(answer_bytes);
  RETURN_IF_ERROR(CheckTls(out));
  out.http_access.certificates = !out.http_tls_ca.empty();
  return TakeAccess(texts, out.http_access);
}

}  // namespace tributary
