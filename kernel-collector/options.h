#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log_setup.h"
#include "base/metrics_server.h"
#include "base/options.h"
#include "base/parse.h"
#include "intake/credentials/credentials.h"
#include "kernel-collector/direct/receiver.h"
#include "kernel-collector/metadata/metadata_options.h"
#include "kernel-collector/runtimes/runtime_kinds.h"

namespace tributary {

// The options of kernel-collector. options.cc defines their names, defaults and help texts.
struct CollectorOptions {
  std::string intake_encoder;      // binary, otlp_profiles, otlp_log, console
  std::vector<HostPort> reducers;  // 1 to 8; none unless sends_to_reducers()
  DirectReceiver receiver;         // unless sends_to_reducers()
  otlp::Variables otlp_variables;  // the environment's OTEL_EXPORTER_OTLP_*
  bool names = true;               // unless sends_to_reducers(): name functions on this node
  int64_t names_memory_bytes = 0;
  int64_t metrics_interval_ns = 0;  // unless sends_to_reducers(): of OTLP metrics; 0: none
  IntakeCredentialOptions credentials;
  int64_t sample_rate_hz = 0;
  int64_t event_budget = 0;  // process events per second; 0: none
  double cpu_budget = 0;     // share of the node's CPU time: 0.01 = 1%; infinity = off
  int64_t unwind_memory_bytes = 0;
  RuntimeSet runtimes = 0;          // that are on
  int64_t batch_interval_ns = 0;    // how often a batch is made
  int64_t batches_per_request = 1;  // more than 1 only with otlp_profiles
  int64_t shutdown_timeout_ns = 0;
  int64_t intake_memory_bytes = 0;
  int64_t in_doubt_timeout_ns = 0;
  int64_t upgrade_wait_ns = 0;
  bool upload_debug_info = false;
  std::string spool_dir;  // "" = none
  int64_t spool_bytes_max = 0;
  std::vector<std::string> resource_env;  // names of environment variables
  std::string record_intake_output_path;  // "" = no recording
  std::string node_id;                    // see SessionInfoOptions
  std::string proc_root;
  std::string sys_root;
  std::string cgroup_root;
  MetadataOptions metadata;
  LogSetup log;
  std::vector<OptionValue> values;
  std::vector<std::string> warnings;  // about options whose feature does not exist here
  MetricsListen metrics_listen;
  bool health_check = false;  // checks a running collector instead of running one

  bool sends_to_reducers() const { return intake_encoder == "binary"; }
};

absl::StatusOr<Options::Outcome> ParseCollectorOptions(int argc, const char* const* argv,
                                                       const Options::Environment& environment,
                                                       CollectorOptions* options);

// Returns the names of the reloadable options that need a restart because the node sends to no reducer. Its connections
// keep the credential options of the start, but read the files again.
std::vector<std::string> NeedRestart(const CollectorOptions& options);

// Logs `warnings`, one line for each.
void LogWarnings(const CollectorOptions& options);

}  // namespace tributary
