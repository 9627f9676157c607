#include "kernel-collector/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/health_check.h"
#include "base/number.h"
#include "base/status.h"
#include "base/types.h"
#include "intake/credentials/intake_options.h"
#include "kernel-collector/manual.h"
#include "kernel-collector/metadata/host_files.h"

namespace tributary {
namespace {

constexpr size_t kResourceEnvMax = 32;
constexpr size_t kVariableNameBytesMax = 128;

// Parses "NAME,NAME".
absl::StatusOr<std::vector<std::string>> ParseVariableNames(std::string_view value) {
  std::vector<std::string> names;
  while (!value.empty()) {
    const size_t comma = value.find(',');
    const std::string_view name = value.substr(0, comma);
    const bool is_last = comma == std::string_view::npos;
    value.remove_prefix(is_last ? value.size() : comma + 1);
    if (name.empty() || name.size() > kVariableNameBytesMax || name.find('=') != std::string_view::npos ||
        names.size() == kResourceEnvMax || (!is_last && value.empty())) {
      return Error(absl::StatusCode::kInvalidArgument,
                   "must be names of environment variables, up to 32, with commas between them");
    }
    names.emplace_back(name);
  }
  return names;
}

absl::Status CheckDuration(std::string_view value, int64_t min_ns, int64_t max_ns, std::string_view range) {
  auto ns = ParseDurationNs(value);
  if (ns.ok() && *ns >= min_ns && *ns <= max_ns) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("must be a duration of {}", range));
}

// Parses "0.05%" or "off", which is infinity.
absl::StatusOr<double> ParseCpuBudget(std::string_view value) {
  if (value == "off") return std::numeric_limits<double>::infinity();
  const std::optional<double> percent = TakeNumber<double>(value);
  if (percent && value == "%" && *percent >= 0.001 && *percent <= 100) return *percent / 100;
  return Error(absl::StatusCode::kInvalidArgument, "must be 0.001% to 100%, or off");
}

absl::Status CheckBytes(std::string_view value, int64_t min, int64_t max, std::string_view range) {
  auto bytes = ParseBytes(value);
  if (bytes.ok() && *bytes >= min && *bytes <= max) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("must be a size of {}", range));
}

// Adds the options for data that waits on the node while no reducer answers.
void AddWaiting(Options& table, CollectorOptions& options, std::string* memory, std::string* spool,
                std::string* in_doubt) {
  table.Add({.name = "intake-memory-max",
             .help = "memory for samples that wait to be sent, 64KiB to 1GiB; beyond, the oldest go to the spool",
             .value_name = "SIZE",
             .check = [](std::string_view v) { return CheckBytes(v, 64 << 10, int64_t{1} << 30, "64KiB to 1GiB"); }},
            memory, "8MiB");
  table.Add(
      {.name = "spool-dir",
       .help = "directory for samples that memory has no room for, and those a stop leaves unsent; none when empty",
       .value_name = "DIR"},
      &options.spool_dir, "");
  table.Add({.name = "spool-bytes-max",
             .help = "size of the spool beyond which the oldest samples are dropped, 1MiB to 1TiB",
             .value_name = "SIZE",
             .check = [](std::string_view v) { return CheckBytes(v, 1 << 20, int64_t{1} << 40, "1MiB to 1TiB"); }},
            spool, "64MiB");
  table.Add({.name = "in-doubt-timeout",
             .help = "how long samples sent to a reducer that fell silent wait for it once another has taken over, "
                     "1s to 7d; then they count as lost",
             .value_name = "DURATION",
             .check = [](std::string_view v) { return CheckDuration(v, kNsPerSecond, 7 * kNsPerDay, "1s to 7d"); }},
            in_doubt, "5m");
}

// Returns the path below --host-dir only if `inside` exists there too. The folder may be empty, or hold only other
// mounts: for example /hostfs/sys where only /hostfs/sys/fs/cgroup is mounted.
std::string MountOnHost(const std::string& host_dir, const std::string& path, const char* inside) {
  const std::string mounted = PathOnHost(host_dir, path);
  return access((mounted + inside).c_str(), F_OK) == 0 ? mounted : path;
}

void FindHostFolders(CollectorOptions& options) {
  const std::string& host_dir = options.metadata.host_dir;
  if (options.proc_root.empty()) options.proc_root = MountOnHost(host_dir, "/proc", "/1/stat");
  if (options.sys_root.empty()) options.sys_root = MountOnHost(host_dir, "/sys", "/kernel");
  if (options.cgroup_root.empty()) options.cgroup_root = PathOnHost(host_dir, "/sys/fs/cgroup");
}

}  // namespace

absl::StatusOr<Options::Outcome> ParseCollectorOptions(int argc, const char* const* argv,
                                                       const Options::Environment& environment,
                                                       CollectorOptions* options) {
  std::string hosts, cpu_budget, unwind_memory, batch_interval, shutdown_timeout, memory, spool, in_doubt, resource_env;
  std::string metrics_listen;
  int64_t port = 0;
  Options table("kernel-collector", "Samples every process of this machine and sends the stacks to a reducer.");
  table.SetManual(CollectorManual);
  table.Add(
      {.name = "intake-host",
       .help = "host of the reducer, or HOST:PORT; of several, with commas between them, each node prefers one and "
               "turns to another when that is silent",
       .value_name = "HOST",
       .check = [](std::string_view v) { return intake::ParseReducers(v, 1).status(); }},
      &hosts, "127.0.0.1");
  table.Add({.name = "intake-port", .help = "port of the reducer", .value_name = "PORT"}, &port, 8000, 1, 65'535);
  table.Add(
      {.name = "intake-encoder", .help = "how samples are sent: binary", .value_name = "NAME", .values = {"binary"}},
      &options->intake_encoder, "binary");
  intake::AddCredentials(table, options->credentials);
  table.Add({.name = "sample-rate", .help = "samples per second and CPU", .value_name = "HZ", .reloadable = true},
            &options->sample_rate_hz, 19, 1, 10'000);
  table.Add(
      {.name = "cpu-budget",
       .help = "share of this machine's CPU time to keep within, by a lower sample rate if need be; off: no bound",
       .value_name = "PERCENT",
       .check = [](std::string_view v) { return ParseCpuBudget(v).status(); }},
      &cpu_budget, "1%");
  table.Add({.name = "unwind-memory",
             .help = "kernel memory for unwind tables at most, 8MiB to 1GiB",
             .value_name = "SIZE",
             .check = [](std::string_view v) { return CheckBytes(v, 8 << 20, int64_t{1} << 30, "8MiB to 1GiB"); }},
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
  table.Add({.name = "upload-debug-info",
             .help = "make symbol tables of debug information too, where executables have it: inlined calls and lines, "
                     "for seconds of CPU once a large executable and fleet"},
            &options->upload_debug_info, false);
  table.Add({.name = "resource-env",
             .help = "environment variables to take from every process, as process.environment_variable.NAME; beside "
                     "OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, which are always read",
             .value_name = "NAME,NAME",
             .check = [](std::string_view v) { return ParseVariableNames(v).status(); }},
            &resource_env, "");
  AddWaiting(table, *options, &memory, &spool, &in_doubt);
  table.Add({.name = "node-id",
             .help = "stable name of this node; machine-id when empty, else the firmware's",
             .value_name = "ID"},
            &options->node_id, "");
  table.Add({.name = "proc-root",
             .help = "where the host's /proc is mounted; /proc when empty, below --host-dir if it is there",
             .value_name = "DIR"},
            &options->proc_root, "");
  table.Add({.name = "sys-root",
             .help = "where the host's /sys is mounted; /sys when empty, below --host-dir if it is there",
             .value_name = "DIR"},
            &options->sys_root, "");
  table.Add({.name = "cgroup-root",
             .help = "where the host's cgroups are mounted; /sys/fs/cgroup when empty, below --host-dir if it is there",
             .value_name = "DIR"},
            &options->cgroup_root, "");
  MetadataOptionTable metadata(options->metadata);
  metadata.AddTo(table);
  AddMetricsListen(table, "127.0.0.1:4041", &metrics_listen);
  AddHealthCheck(table, &options->health_check);
  ASSIGN_OR_RETURN(Options::Outcome outcome, table.Parse(argc, argv, environment));
  if (outcome == Options::Outcome::kExit) return outcome;
  options->log = table.log_setup();
  options->values = table.values();
  ASSIGN_OR_RETURN(options->metrics_listen, TakeMetricsListen(table, metrics_listen));
  if (options->health_check) return outcome;
  ASSIGN_OR_RETURN(options->reducers, intake::ParseReducers(hosts, static_cast<uint16_t>(port)));
  ASSIGN_OR_RETURN(options->intake_memory_bytes, ParseBytes(memory));
  ASSIGN_OR_RETURN(options->spool_bytes_max, ParseBytes(spool));
  ASSIGN_OR_RETURN(options->in_doubt_timeout_ns, ParseDurationNs(in_doubt));
  ASSIGN_OR_RETURN(options->resource_env, ParseVariableNames(resource_env));
  RETURN_IF_ERROR(intake::TakeCredentials(options->credentials));
  RETURN_IF_ERROR(metadata.Take());
  FindHostFolders(*options);
  ASSIGN_OR_RETURN(options->cpu_budget, ParseCpuBudget(cpu_budget));
  ASSIGN_OR_RETURN(options->unwind_memory_bytes, ParseBytes(unwind_memory));
  ASSIGN_OR_RETURN(options->batch_interval_ns, ParseDurationNs(batch_interval));
  ASSIGN_OR_RETURN(options->shutdown_timeout_ns, ParseDurationNs(shutdown_timeout));
  return outcome;
}

}  // namespace tributary
