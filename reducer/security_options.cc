#include "reducer/security_options.h"

#include "base/status.h"

namespace tributary {

absl::Status CheckNodeBytes(std::string_view text) {
  absl::StatusOr<int64_t> bytes = ParseBytes(text);
  if (bytes.ok() && *bytes >= 64 << 10 && *bytes <= int64_t{1} << 40) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be a size of 64KiB to 1TiB");
}

void AddSecurity(Options& table, ReducerOptions& out, SecurityTexts& texts) {
  table.Add({.name = "tls-cert",
             .help = "PEM file of the certificate chain for --intake-listen; if set, collectors must use TLS",
             .value_name = "FILE",
             .reloadable = true},
            &out.tls_cert, "");
  table.Add({.name = "tls-key",
             .help = "PEM file of the private key for --tls-cert",
             .value_name = "FILE",
             .reloadable = true},
            &out.tls_key, "");
  table.Add({.name = "tls-ca",
             .help = "PEM file of the certificate authorities that sign collectors' certificates; if set, every "
                     "collector must present such a certificate",
             .value_name = "FILE",
             .reloadable = true},
            &out.tls_ca, "");
  table.Add({.name = "intake-token-file",
             .help = "file of tokens, one per line: TOKEN, or TOKEN NODE-ID-PATTERN for a token that is valid only for "
                     "node ids that match the pattern; if set, every collector must send one of the tokens",
             .value_name = "FILE",
             .reloadable = true},
            &out.intake_token_file, "");
  table.Add({.name = "intake-identity",
             .help = "check of the names in a collector's certificate, if --tls-ca is set; credential: one of the "
                     "names must be the collector's node id, or a pattern that matches the node id; any: no check",
             .value_name = "WHAT",
             .reloadable = true,
             .values = {"credential", "any"}},
            &texts.identity, "credential");
  table.Add(
      {.name = "intake-node-bytes-per-second",
       .help = "largest number of bytes per second that a node may send, 64KiB to 1TiB; if a node sends more, the "
               "reducer pauses reading from the node; meanwhile the node's samples wait in the node's memory or spool",
       .value_name = "BYTES",
       .check = CheckNodeBytes},
      &texts.node_rate, "64MiB");
  table.Add({.name = "intake-node-work-per-second",
             .help = "largest number of samples, process events and definitions that a node may make the reducer "
                     "decode per second; two unpacked bytes, or 64 bytes of a message, count as one more; if a node "
                     "sends more, the reducer pauses reading from the node",
             .value_name = "N"},
            &out.node_work_per_second, 2'000'000, 10'000, 1'000'000'000);
  table.Add({.name = "intake-node-generations-per-second",
             .help = "largest number of dictionaries that a node may begin per second; if a node begins more, the "
                     "reducer pauses reading from the node",
             .value_name = "N"},
            &out.node_generations_per_second, 10, 1, 100'000);
  table.Add({.name = "intake-node-old-days",
             .help = "largest number of days older than --retention-raw of which a node may send samples within an "
                     "hour; samples of further days wait in the node's memory or spool, with all later samples of the "
                     "node",
             .value_name = "N"},
            &out.node_old_days, 4, 1, 10'000);
}

absl::Status TakeSecurity(const SecurityTexts& texts, ReducerOptions& out) {
  out.certificate_names_node = texts.identity == "credential";
  ASSIGN_OR_RETURN(out.node_bytes_per_second, ParseBytes(texts.node_rate));
  if (out.tls_cert.empty() != out.tls_key.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "--tls-cert and --tls-key belong together: one is missing");
  }
  if (out.tls_cert.empty() && !out.tls_ca.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "--tls-ca needs --tls-cert and --tls-key");
  }
  return absl::OkStatus();
}

}  // namespace tributary
