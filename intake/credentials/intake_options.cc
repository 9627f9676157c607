#include "intake/credentials/intake_options.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"

namespace tributary::intake {
namespace {

constexpr size_t kReducersMax = 8;

}  // namespace

absl::StatusOr<std::vector<HostPort>> ParseReducers(std::string_view value, uint16_t port) {
  std::vector<HostPort> reducers;
  while (true) {
    const size_t comma = value.find(',');
    const std::string_view one = value.substr(0, comma);
    const bool bare_v6 = std::count(one.begin(), one.end(), ':') > 1 && !one.starts_with('[');
    HostPort reducer{std::string(one), port};
    if (!bare_v6 && one.find(':') != std::string_view::npos) {
      ASSIGN_OR_RETURN(reducer, ParseHostPort(one));
    }
    const bool known = std::any_of(reducers.begin(), reducers.end(), [&](const HostPort& other) {
      return other.host == reducer.host && other.port == reducer.port;
    });
    // A user or a password would be logged.
    if (reducer.host.empty() || reducer.port == 0 || one.find('@') != std::string_view::npos || known ||
        reducers.size() == kReducersMax) {
      return Error(absl::StatusCode::kInvalidArgument,
                   "must be HOST or HOST:PORT, or up to 8 different reducers in this form, separated by commas");
    }
    reducers.push_back(std::move(reducer));
    if (comma == std::string_view::npos) return reducers;
    value.remove_prefix(comma + 1);
  }
}

void AddCredentials(Options& table, IntakeCredentialOptions& out) {
  table.Add({.name = "tls",
             .help = "connect to reducers by TLS; --tls-ca, --tls-cert or --tls-server-name imply --tls",
             .reloadable = true},
            &out.tls, false);
  table.Add({.name = "tls-ca",
             .help = "PEM file of the certificate authorities that sign reducers' certificates; if empty, the system's "
                     "authorities are trusted",
             .value_name = "FILE",
             .reloadable = true},
            &out.tls_ca, "");
  table.Add({.name = "tls-cert",
             .help = "PEM file of this program's own certificate chain, for reducers that require a client certificate",
             .value_name = "FILE",
             .reloadable = true},
            &out.tls_cert, "");
  table.Add({.name = "tls-key",
             .help = "PEM file of the private key for --tls-cert",
             .value_name = "FILE",
             .reloadable = true},
            &out.tls_key, "");
  table.Add({.name = "tls-server-name",
             .help = "name that each reducer's certificate must contain; if empty, the reducer's host in --intake-host",
             .value_name = "NAME",
             .reloadable = true},
            &out.tls_server_name, "");
  table.Add({.name = "intake-token-file",
             .help = "file with the token that this program sends to reducers; the program reads the file again for "
                     "every connection",
             .value_name = "FILE",
             .reloadable = true},
            &out.token_file, "");
}

absl::Status TakeCredentials(IntakeCredentialOptions& out) {
  if (out.tls_cert.empty() != out.tls_key.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "--tls-cert and --tls-key belong together: one is missing");
  }
  out.tls = out.tls || !out.tls_ca.empty() || !out.tls_cert.empty() || !out.tls_server_name.empty();
  return absl::OkStatus();
}

}  // namespace tributary::intake
