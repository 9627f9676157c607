#include "kernel-collector/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/health_check.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "base/types.h"
#include "intake/credentials/intake_options.h"
#include "kernel-collector/destination_options.h"
#include "kernel-collector/distribution/profiler_options.h"
#include "kernel-collector/manual.h"
#include "kernel-collector/metadata/host_files.h"
#include "kernel-collector/option_checks.h"

namespace tributary {
namespace {

constexpr size_t kResourceEnvMax = 32;
constexpr size_t kVariableNameBytesMax = 128;
constexpr int64_t kBatchTogetherIntervalMaxNs = 5 * kNsPerSecond;  // of batches that are sent together

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
                   "must be the names of up to 32 environment variables, separated by commas");
    }
    names.emplace_back(name);
  }
  return names;
}

// Parses "0.05%" or "off", which is infinity.
absl::StatusOr<double> ParseCpuBudget(std::string_view value) {
  if (value == "off") return std::numeric_limits<double>::infinity();
  const std::optional<double> percent = TakeNumber<double>(value);
  if (percent && value == "%" && *percent >= 0.001 && *percent <= 100) return *percent / 100;
  return Error(absl::StatusCode::kInvalidArgument, "must be 0.001% to 100%, or off");
}

// Adds the options for data that waits on the node while no reducer answers.
void AddWaiting(Options& table, CollectorOptions& options, std::string* memory, std::string* spool,
                std::string* in_doubt, std::string* upgrade) {
  table.Add(
      {.name = "intake-memory-max",
       .help =
           "largest amount of memory for samples that no reducer has acknowledged, 64KiB to 1GiB; when this memory is "
           "full, the oldest samples are written to the spool; without a spool, or if the spool cannot be written, "
           "they are lost; if empty, 8MiB, and 32MiB without a reducer",
       .value_name = "SIZE",
       .check =
           [](std::string_view v) {
             return v.empty() ? absl::OkStatus() : CheckBytes(v, 64 << 10, int64_t{1} << 30, "64KiB to 1GiB");
           }},
      memory, "");
  table.Add({.name = "spool-dir",
             .help = "directory of the spool, which stores samples on disk until a reducer acknowledges them; samples "
                     "are written to the spool when no reducer has answered for 5 s, when --intake-memory-max is full, "
                     "and when the collector stops; without a reducer, after a request failed; if empty, there is no "
                     "spool",
             .value_name = "DIR"},
            &options.spool_dir, "");
  table.Add({.name = "spool-bytes-max",
             .help = "largest size of the spool, 1MiB to 1TiB; when the spool is full, its oldest samples are lost",
             .value_name = "SIZE",
             .check = [](std::string_view v) { return CheckBytes(v, 1 << 20, int64_t{1} << 40, "1MiB to 1TiB"); }},
            spool, "64MiB");
  table.Add({.name = "in-doubt-timeout",
             .help = "after a change to another reducer: how long samples that were already sent to the previous "
                     "reducer wait for its acknowledgement, 1s to 7d; after this time they count as lost",
             .value_name = "DURATION",
             .check = [](std::string_view v) { return CheckDuration(v, kNsPerSecond, 7 * kNsPerDay, "1s to 7d"); }},
            in_doubt, "5m");
  table.Add({.name = "upgrade-wait",
             .help = "how long samples wait on the node for the upgrade of a reducer that is of an earlier release and "
                     "cannot store process events, 0s to 7d; after this time, or when the space for them is nearly "
                     "full, they are sent without the events, which count as lost; 0s: they do not wait",
             .value_name = "DURATION",
             .check = [](std::string_view v) { return CheckDuration(v, 0, 7 * kNsPerDay, "0s to 7d"); }},
            upgrade, "1h");
}

// A request of profiles has several batches if the interval is long. Each request repeats names and stacks: three
// batches together need a third fewer bytes. But a batch is made every 5 s all the same, because then the symbols of
// its executables are read. After a longer time, more processes have ended.
absl::Status TakeInterval(std::string_view interval, CollectorOptions& options) {
  const bool is_profiles = options.intake_encoder == "otlp_profiles";
  if (interval.empty()) interval = is_profiles ? "15s" : "5s";
  ASSIGN_OR_RETURN(options.batch_interval_ns, ParseDurationNs(interval));
  if (!is_profiles) return absl::OkStatus();
  options.batches_per_request =
      (options.batch_interval_ns + kBatchTogetherIntervalMaxNs - 1) / kBatchTogetherIntervalMaxNs;
  options.batch_interval_ns /= options.batches_per_request;
  return absl::OkStatus();
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
  std::string upgrade, metrics_listen, runtimes;
  Options table("kernel-collector", "Samples the stacks of every process of this machine and sends them to a reducer.");
  table.SetManual(CollectorManual);
  DestinationOptionTable destination;
  destination.AddTo(table, *options);
  intake::AddCredentials(table, options->credentials);
  table.Add({.name = "sample-rate",
             .help = "number of samples per second on each busy CPU",
             .value_name = "HZ",
             .flag_aliases = {"samples-per-second"},
             .env_aliases = {"OTEL_PROFILING_AGENT_SAMPLES_PER_SECOND"},
             .reloadable = true},
            &options->sample_rate_hz, 19, 1, 10'000);
  table.Add({.name = "cpu-budget",
             .help = "largest share of this machine's CPU time that the collector may use, 0.001% to 100%; to stay "
                     "below it, the collector lowers the sample rate; off: no limit",
             .value_name = "PERCENT",
             .check = [](std::string_view v) { return ParseCpuBudget(v).status(); }},
            &cpu_budget, "1%");
  table.Add(
      {.name = "event-budget",
       .help = "largest number of records of process events (starts, execs and exits) that the collector sends per "
               "second, averaged over 10 s; if there are more events, short processes are summed up by program; "
               "0: no process events",
       .value_name = "N"},
      &options->event_budget, 200, 0, 10'000);
  table.Add({.name = "unwind-memory",
             .help = "largest amount of kernel memory for unwind information (needed to walk stacks), 8MiB to 1GiB",
             .value_name = "SIZE",
             .check = [](std::string_view v) { return CheckBytes(v, 8 << 20, int64_t{1} << 30, "8MiB to 1GiB"); }},
            &unwind_memory, "64MiB");
  table.Add({.name = "runtimes",
             .help = "language runtimes whose functions are named: all, none, or names separated by commas: python; "
                     "hotspot (or jvm), v8 (or node), ruby, php, perl, dotnet, beam and luajit are not supported yet; "
                     "native and Go code is always sampled",
             .value_name = "NAME,NAME",
             .check = [](std::string_view v) { return ParseRuntimes(v).status(); }},
            &runtimes, "all");
  table.Add({.name = "batch-interval",
             .help = "time between two batches of samples that the collector sends, 100ms to 1m; if empty, 5s, and 15s "
                     "with the encoder otlp_profiles",
             .value_name = "DURATION",
             .flag_aliases = {"reporter-interval"},
             .env_aliases = {"OTEL_PROFILING_AGENT_REPORTER_INTERVAL"},
             .check =
                 [](std::string_view v) {
                   return v.empty() ? absl::OkStatus() : CheckDuration(v, 100 * kNsPerMs, kNsPerMinute, "100ms to 1m");
                 }},
            &batch_interval, "");
  table.Add(
      {.name = "shutdown-timeout",
       .help = "how long the collector waits, before it exits, for a reducer to acknowledge the last samples, 0s to 1m",
       .value_name = "DURATION",
       .check = [](std::string_view v) { return CheckDuration(v, 0, kNsPerMinute, "0s to 1m"); }},
      &shutdown_timeout, "4s");
  table.Add({.name = "record-intake-output-path",
             .help = "file to which the collector writes a copy of every batch, for tributary inspect and tributary "
                     "replay; when the file reaches 1 GiB, the recording ends",
             .value_name = "FILE"},
            &options->record_intake_output_path, "");
  table.Add({.name = "upload-debug-info",
             .help = "make symbol tables from debug information too, not only from symbols: such tables have inlined "
                     "calls and line numbers; a large executable costs seconds of CPU time, on one node of the fleet"},
            &options->upload_debug_info, false);
  table.Add(
      {.name = "resource-env",
       .help =
           "names of environment variables; if a sampled process has such a variable, its samples get the attribute "
           "process.environment_variable.NAME; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are always read",
       .value_name = "NAME,NAME",
       .flag_aliases = {"env-vars"},
       .env_aliases = {"OTEL_PROFILING_AGENT_ENV_VARS"},
       .check = [](std::string_view v) { return ParseVariableNames(v).status(); }},
      &resource_env, "");
  AddWaiting(table, *options, &memory, &spool, &in_doubt, &upgrade);
  table.Add({.name = "node-id",
             .help = "id of this node, unique in the fleet and the same after each restart; if empty, the machine-id "
                     "(/etc/machine-id), else the firmware's UUID, else the host name",
             .value_name = "ID"},
            &options->node_id, "");
  table.Add({.name = "proc-root",
             .help = "directory where the host's /proc is mounted; if empty, /proc below --host-dir if the host's "
                     "/proc is mounted there, else /proc",
             .value_name = "DIR"},
            &options->proc_root, "");
  table.Add({.name = "sys-root",
             .help = "directory where the host's /sys is mounted; if empty, /sys below --host-dir if the host's /sys "
                     "is mounted there, else /sys",
             .value_name = "DIR"},
            &options->sys_root, "");
  table.Add({.name = "cgroup-root",
             .help = "directory where the host's cgroups are mounted; if empty, /sys/fs/cgroup below --host-dir if "
                     "this directory exists, else /sys/fs/cgroup",
             .value_name = "DIR"},
            &options->cgroup_root, "");
  MetadataOptionTable metadata(options->metadata);
  metadata.AddTo(table);
  AddMetricsListen(table, "127.0.0.1:4041", &metrics_listen);
  AddHealthCheck(table, &options->health_check);
  ProfilerOptionTable profiler;
  profiler.AddTo(table, environment);
  ASSIGN_OR_RETURN(Options::Outcome outcome, table.Parse(argc, argv, environment));
  options->warnings = profiler.TakeWarnings();
  ASSIGN_OR_RETURN(const RuntimeChoice choice, ParseRuntimes(runtimes));
  options->runtimes = choice.runtimes;
  if (std::string unsupported = UnsupportedRuntimes(choice); !unsupported.empty()) {
    options->warnings.push_back("--runtimes: " + unsupported);
  }
  if (outcome == Options::Outcome::kExit) {
    // The output of --help and --version is not about the values of options.
    if (!table.IsGiven("print-config")) options->warnings.clear();
    return outcome;
  }
  options->log = table.log_setup();
  options->values = table.values();
  options->values.push_back(ValueOf(profiler.receiver_settings()));
  ASSIGN_OR_RETURN(options->metrics_listen, TakeMetricsListen(table, metrics_listen));
  if (options->health_check) return outcome;
  if (memory.empty()) memory = options->sends_to_reducers() ? "8MiB" : "32MiB";
  ASSIGN_OR_RETURN(options->intake_memory_bytes, ParseBytes(memory));
  ASSIGN_OR_RETURN(options->spool_bytes_max, ParseBytes(spool));
  ASSIGN_OR_RETURN(options->in_doubt_timeout_ns, ParseDurationNs(in_doubt));
  ASSIGN_OR_RETURN(options->upgrade_wait_ns, ParseDurationNs(upgrade));
  ASSIGN_OR_RETURN(options->resource_env, ParseVariableNames(resource_env));
  RETURN_IF_ERROR(intake::TakeCredentials(options->credentials));
  RETURN_IF_ERROR(destination.Take(table, environment, profiler.receiver_settings(), *options));
  RETURN_IF_ERROR(metadata.Take());
  FindHostFolders(*options);
  ASSIGN_OR_RETURN(options->cpu_budget, ParseCpuBudget(cpu_budget));
  ASSIGN_OR_RETURN(options->unwind_memory_bytes, ParseBytes(unwind_memory));
  RETURN_IF_ERROR(TakeInterval(batch_interval, *options));
  ASSIGN_OR_RETURN(options->shutdown_timeout_ns, ParseDurationNs(shutdown_timeout));
  return outcome;
}

std::vector<std::string> NeedRestart(const CollectorOptions& options) {
  if (options.sends_to_reducers()) return {};
  return {"tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "intake-token-file"};
}

void LogWarnings(const CollectorOptions& options) {
  for (const std::string& warning : options.warnings) LogWarning("{}", warning);
}

}  // namespace tributary
