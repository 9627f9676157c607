#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log_setup.h"
#include "base/metrics_server.h"
#include "base/options.h"
#include "base/parse.h"
#include "profile/attributes.h"
#include "reducer/access/access_control.h"
#include "reducer/metadata/k8s_name_rules.h"
#include "reducer/profile_metrics/metric_spec.h"

namespace tributary {

// Values of the reducer's options, from flags, environment variables and the configuration file. `reducer --help`
// describes them.
struct ReducerOptions {
  HostPort intake_listen, http_listen;
  MetricsListen metrics_listen;
  AccessControl::Options
      http_access;  // without `is_loopback`, which depends on the address that http_listen resolves to
  std::string http_tls_cert, http_tls_key, http_tls_ca;  // no http_tls_cert: plain HTTP
  int64_t http_connections_max = 2'048, http_connections_per_address_max = 256;
  uint64_t http_answer_bytes_max = 256u << 20;
  std::string data_dir;
  std::string store;  // URL (stores.h)
  uint32_t shards = 1;
  std::vector<std::string> exports;
  std::map<std::string, std::string> export_variables;  // OTEL_EXPORTER_OTLP_*; some are secret
  std::vector<MetricSpec> metrics;
  size_t metric_series_max = 1'000, metric_total_series_max = 10'000;
  int64_t raw_age_ns = 0, sum_age_ns = 0, event_age_ns = 0;
  uint64_t store_bytes_max = 0;
  int64_t trie_nodes_per_day = 8 << 20, node_trie_nodes_per_day = 64 << 10;
  uint64_t node_definition_bytes_per_day = 32u << 20;
  std::string tls_cert, tls_key, tls_ca;  // of the intake; no tls_cert: plain TCP; no tls_ca: no client certificates
  std::string intake_token_file;          // "": no token is required
  bool certificate_names_node = true;     // if tls_ca is set: a certificate must name the node id
  uint64_t session_memory_bytes_max = 0;  // of all shards
  int64_t node_bytes_per_second = 0, node_work_per_second = 0, node_generations_per_second = 0, node_old_days = 0;
  std::string symbols_dir;  // "": in the data directory
  uint64_t symbols_bytes_max = 0, symbol_file_bytes_max = 0, symbol_memory_bytes_max = 0;
  bool symbol_uploads = true;
  bool symbol_digests = true;
  std::vector<std::string> debug_dirs;
  std::vector<std::string> debuginfod_urls;
  std::vector<std::string> source_dirs;
  int64_t metadata_keep_ns = 0, metadata_wait_ns = 0;
  int64_t export_interval_ns = kNsPerSecond;
  int64_t export_lag_max_ns = 0;  // 0: no limit
  K8sNameRules k8s_names;
  Attributes resource;  // attributes of all samples
  std::string ports_file;
  LogSetup log;
  std::vector<OptionValue> values;
  bool health_check = false;  // asks a running reducer for its health, instead of running one
  bool exit = false;          // --help or a similar option was answered: nothing is left to run
};

absl::StatusOr<ReducerOptions> ParseReducerOptions(int argc, const char* const* argv,
                                                   const Options::Environment& environment);

// Returns /var/lib/tributary for root. For other users, returns the first of these directories for which the variable
// is an absolute path: $XDG_STATE_HOME/tributary, $HOME/.local/state/tributary. If neither is, returns tributary-data
// in the current directory.
std::string DefaultDataDirectory(bool is_root, const Options::Environment& environment);

}  // namespace tributary
