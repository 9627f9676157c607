#include "kernel-collector/options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

absl::Status CheckEncoder(std::string_view value) {
  if (value == "binary") return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be binary: the only encoder of this version");
}

absl::Status CheckHost(std::string_view value) {
  if (!value.empty()) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be a host name or an address");
}

absl::Status CheckDuration(std::string_view value, int64_t min_ns, int64_t max_ns, std::string_view range) {
  auto ns = ParseDurationNs(value);
  if (ns.ok() && *ns >= min_ns && *ns <= max_ns) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("must be a duration of {}", range));
}

// "0.05%" or "off", which is infinity.
absl::StatusOr<double> ParseCpuBudget(std::string_view value) {
  if (value == "off") return std::numeric_limits<double>::infinity();
  double percent = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), percent);
  std::string_view unit(end, static_cast<size_t>(value.data() + value.size() - end));
  if (error == std::errc() && unit == "%" && percent >= 0.001 && percent <= 100) return percent / 100;
  return Error(absl::StatusCode::kInvalidArgument, "must be 0.001% to 100%, or off");
}

absl::Status CheckUnwindMemory(std::string_view value) {
  auto bytes = ParseBytes(value);
  if (bytes.ok() && *bytes >= int64_t{8} << 20 && *bytes <= int64_t{1} << 30) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be a size of 8MiB to 1GiB");
}

// Who the reducer is, and who we are to it (docs/security.md).
void AddCredentials(Options& table, IntakeCredentialOptions& out) {
  table.Add({.name = "tls", .help = "speak TLS to the reducer; implied by the other tls options"}, &out.tls, false);
  table.Add({.name = "tls-ca",
             .help = "who signs the reducer's certificate, PEM; the system's authorities when empty",
             .value_name = "FILE"},
            &out.tls_ca, "");
  table.Add({.name = "tls-cert", .help = "own certificate chain, PEM, for reducers that ask", .value_name = "FILE"},
            &out.tls_cert, "");
  table.Add({.name = "tls-key", .help = "private key of --tls-cert, PEM", .value_name = "FILE"}, &out.tls_key, "");
  table.Add({.name = "tls-server-name",
             .help = "name that the reducer's certificate is for; --intake-host when empty",
             .value_name = "NAME"},
            &out.tls_server_name, "");
  table.Add({.name = "intake-token-file",
             .help = "file with the token to show; read again for every connection",
             .value_name = "FILE"},
            &out.token_file, "");
}

absl::Status TakeCredentials(IntakeCredentialOptions& out) {
  if (out.tls_cert.empty() != out.tls_key.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, "--tls-cert and --tls-key belong together: one is missing");
  }
  out.tls = out.tls || !out.tls_ca.empty() || !out.tls_cert.empty() || !out.tls_server_name.empty();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options::Outcome> ParseCollectorOptions(int argc, const char* const* argv,
                                                       const Options::Environment& environment,
                                                       CollectorOptions* options) {
  std::string cpu_budget, unwind_memory, batch_interval, shutdown_timeout;
  Options table("kernel-collector", "Samples every process of this machine and sends the stacks to a reducer.");
  table.Add({.name = "intake-host", .help = "host of the reducer", .value_name = "HOST", .check = CheckHost},
            &options->intake_host, "127.0.0.1");
  table.Add({.name = "intake-port", .help = "port of the reducer", .value_name = "PORT"}, &options->intake_port, 8000,
            1, 65'535);
  table.Add(
      {.name = "intake-encoder", .help = "how samples are sent: binary", .value_name = "NAME", .check = CheckEncoder},
      &options->intake_encoder, "binary");
  AddCredentials(table, options->credentials);
  table.Add({.name = "sample-rate", .help = "samples per second and CPU", .value_name = "HZ"}, &options->sample_rate_hz,
            19, 1, 10'000);
  table.Add(
      {.name = "cpu-budget",
       .help = "share of this machine's CPU time to keep within, by a lower sample rate if need be; off: no bound",
       .value_name = "PERCENT",
       .check = [](std::string_view v) { return ParseCpuBudget(v).status(); }},
      &cpu_budget, "1%");
  table.Add({.name = "unwind-memory",
             .help = "kernel memory for unwind tables at most, 8MiB to 1GiB",
             .value_name = "SIZE",
             .check = CheckUnwindMemory},
            &unwind_memory, "64MiB");
  table.Add({.name = "batch-interval",
             .help = "how often samples are sent, 100ms to 1m",
             .value_name = "DURATION",
             .check = [](std::string_view v) { return CheckDuration(v, 100 * kNsPerMs, kNsPerMinute, "100ms to 1m"); }},
            &batch_interval, "5s");
  table.Add({.name = "shutdown-timeout",
             .help = "how long a stop may wait for the reducer, 0s to 1m",
             .value_name = "DURATION",
             .check = [](std::string_view v) { return CheckDuration(v, 0, kNsPerMinute, "0s to 1m"); }},
            &shutdown_timeout, "4s");
  table.Add({.name = "record-intake-output-path",
             .help = "file to write all batches to as well, for tributary inspect and replay; at most 1 GiB",
             .value_name = "FILE"},
            &options->record_intake_output_path, "");
  table.Add({.name = "node-id", .help = "stable name of this node; machine-id when empty", .value_name = "ID"},
            &options->node_id, "");
  table.Add({.name = "proc-root", .help = "where the host's /proc is mounted", .value_name = "DIR"},
            &options->proc_root, "/proc");
  table.Add({.name = "sys-root", .help = "where the host's /sys is mounted", .value_name = "DIR"}, &options->sys_root,
            "/sys");
  table.Add({.name = "cgroup-root", .help = "where the host's cgroups are mounted", .value_name = "DIR"},
            &options->cgroup_root, "/sys/fs/cgroup");
  ASSIGN_OR_RETURN(Options::Outcome outcome, table.Parse(argc, argv, environment));
  if (outcome == Options::Outcome::kExit) return outcome;
  RETURN_IF_ERROR(TakeCredentials(options->credentials));
  ASSIGN_OR_RETURN(options->cpu_budget, ParseCpuBudget(cpu_budget));
  ASSIGN_OR_RETURN(options->unwind_memory_bytes, ParseBytes(unwind_memory));
  ASSIGN_OR_RETURN(options->batch_interval_ns, ParseDurationNs(batch_interval));
  ASSIGN_OR_RETURN(options->shutdown_timeout_ns, ParseDurationNs(shutdown_timeout));
  return outcome;
}

}  // namespace tributary
