#include "cli/server_client.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/tls_context.h"
#include "base/token_table.h"

namespace tributary::cli {
namespace {

constexpr char kTokenVariable[] = "TRIBUTARY_TOKEN";

absl::StatusOr<std::string> FindToken(const std::string& token_file) {
  const char* variable = getenv(kTokenVariable);
  const std::string_view token = variable == nullptr ? "" : variable;
  if (token_file.empty()) {
    if (!token.empty()) RETURN_IF_ERROR(WithContext(CheckToken(token), kTokenVariable));
    return std::string(token);
  }
  if (token.empty()) return ReadToken(token_file);
  return Error(absl::StatusCode::kInvalidArgument,
               "--token-file and the environment variable TRIBUTARY_TOKEN are both given: use only one of them");
}

// Reads the files for TLS now, because curl's messages do not say what is wrong with them.
absl::Status CheckTlsFiles(const ServerOptions& options) {
  Metrics metrics;
  return TlsContext::Load({.side = TlsContext::Side::kClient,
                           .cert_path = options.tls_cert,
                           .key_path = options.tls_key,
                           .ca_path = options.tls_ca},
                          Clock::Real(), metrics)
      .status();
}

}  // namespace

absl::StatusOr<HttpClient> MakeClient(const ServerOptions& options) {
  ASSIGN_OR_RETURN(std::string token, FindToken(options.token_file));
  const bool has_token = !token.empty();
  HttpClient client({.server = options.url,
                     .token = std::move(token),
                     .tls_ca = options.tls_ca,
                     .tls_cert = options.tls_cert,
                     .tls_key = options.tls_key});
  if (has_token && client.has_user()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "--server contains a user name, and a token is given: the reducer accepts only one of them");
  }
  if (options.tls_ca.empty() && options.tls_cert.empty() && options.tls_key.empty()) return client;
  if (!client.is_https()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "--tls-ca and --tls-cert have no effect without TLS: begin the URL of --server with https://");
  }
  RETURN_IF_ERROR(CheckTlsFiles(options));
  return client;
}

}  // namespace tributary::cli
