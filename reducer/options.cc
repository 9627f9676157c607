#include "reducer/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/health_check.h"
#include "base/status.h"
#include "base/types.h"
#include "reducer/export/export_settings.h"
#include "reducer/export/export_url.h"
#include "reducer/http_options.h"
#include "reducer/manual.h"
#include "reducer/metric_options.h"
#include "reducer/security_options.h"
#include "reducer/stores.h"

namespace tributary {
namespace {

absl::Status CheckAge(std::string_view text) {
  absl::StatusOr<int64_t> ns = ParseDurationNs(text);
  if (ns.ok() && *ns >= 10 * kNsPerMinute && *ns <= 3650 * kNsPerDay) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be a duration of 10m to 3650d");
}

absl::Status CheckWait(std::string_view text) {
  absl::StatusOr<int64_t> ns = ParseDurationNs(text);
  if (ns.ok() && *ns >= 0 && *ns <= 10 * kNsPerMinute) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "must be a duration of 0s to 10m");
}

absl::Status CheckStore(std::string_view url) { return url.empty() ? absl::OkStatus() : CheckStoreUrl(url); }

// Options of the trees of stacks (docs/store.md).
void AddTrie(Options& table, ReducerOptions& out) {
  table.Add({.name = "trie-nodes-per-day",
             .help = "largest number of nodes in a day's tree of stacks, in each shard; each takes about 24 bytes of "
                     "memory; if the tree is full, new stacks are cut",
             .value_name = "N"},
            &out.trie_nodes_per_day, ReducerOptions().trie_nodes_per_day, 1000, 1'000'000'000);
  table.Add(
      {.name = "node-trie-nodes-per-day",
       .help = "number of nodes that each machine may add to a day's tree of stacks, unless the tree is full; if a "
               "quarter of the free nodes is more, a machine may add that many",
       .value_name = "N"},
      &out.node_trie_nodes_per_day, ReducerOptions().node_trie_nodes_per_day, 100, 1'000'000'000);
}

std::map<std::string, std::string> VariablesOfExports(const Options::Environment& environment) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : environment) {
    if (name.starts_with("OTEL_EXPORTER_OTLP_") || name == kMetricIntervalVariable) out.emplace(name, value);
  }
  return out;
}

// Options of the store of samples, and of its limits (docs/store.md).
struct StoreTexts {
  std::string raw_age, sum_age, event_age, bytes_max, definition_bytes, session_memory, export_interval, export_lag_max;
  int64_t shards = 1;
};

void AddStore(Options& table, const Options::Environment& environment, ReducerOptions& out, StoreTexts& texts) {
  table.Add(
      {.name = "data-dir",
       .help = "directory of the samples, metadata and symbol tables; by default, /var/lib/tributary for root, else "
               "$XDG_STATE_HOME/tributary or ~/.local/state/tributary",
       .value_name = "DIR",
       .documented_default = DefaultDataDirectory(true, {})},
      &out.data_dir, DefaultDataDirectory(geteuid() == 0, environment));
  table.Add({.name = "store",
             .help = "store of samples and metadata: " + StoreUrlForms() + "; if empty, the data directory",
             .value_name = "URL",
             .check = CheckStore},
            &out.store, "");
  table.Add({.name = "shards",
             .help = "number of shards; each shard has its own event loop and store file, and receives the samples of "
                     "some of the nodes",
             .value_name = "N",
             .flag_aliases = {"num-ingest-shards"}},
            &texts.shards, 1, 1, 256);
  table.Add(
      {.name = "export",
       .help =
           "receiver to which all stored samples are sent: otlp://HOST:4317 over gRPC; otlp+http://HOST:4318 "
           "over HTTP; otlps:// and otlp+https:// for TLS; otlp to take the URL from OTEL_EXPORTER_OTLP_*; each with "
           "?signal=logs for OTLP logs, or with ?signal=metrics for the reducer's metrics and those of --metric; "
           "console for standard output; file:///DIR for files of folded stacks or OTLP; may be repeated "
           "(docs/export.md)",
       .value_name = "URL"},
      &out.exports);
  table.Add({.name = "export-interval",
             .help = "time between two looks of an exporter for new samples, 1s to 5m; a longer time makes fewer and "
                     "larger requests",
             .value_name = "DURATION",
             .check = [](std::string_view text) { return ParseExportInterval(text).status(); }},
            &texts.export_interval, "1s");
  table.Add(
      {.name = "export-lag-max",
       .help = "longest time that samples may wait for an exporter whose receiver is slow or away, 1m to 365d, or "
               "0: no limit but the store's retention; samples that wait longer are skipped and counted",
       .value_name = "DURATION",
       .check = [](std::string_view text) { return ParseExportLag(text).status(); }},
      &texts.export_lag_max, "0");
  out.export_variables = VariablesOfExports(environment);
}

void AddStoreLimits(Options& table, ReducerOptions& out, StoreTexts& texts) {
  table.Add({.name = "retention-raw",
             .help = "how long single samples with exact time stamps are kept; older samples are kept only as sums per "
                     "minute, up to the age of --retention",
             .value_name = "DURATION",
             .check = CheckAge},
            &texts.raw_age, "24h");
  table.Add({.name = "retention",
             .help = "how long the sums of samples per minute are kept",
             .value_name = "DURATION",
             .check = CheckAge},
            &texts.sum_age, "7d");
  table.Add({.name = "retention-events",
             .help = "how long process events are kept: the starts, execs and exits of processes",
             .value_name = "DURATION",
             .check = CheckAge},
            &texts.event_age, "7d");
  table.Add({.name = "store-bytes-max",
             .help = "largest size of the stored samples and process events on disk, without symbol tables; when this "
                     "size is reached, the oldest samples and events are removed, first those of nodes that use more "
                     "than their share",
             .value_name = "BYTES",
             .check = CheckBytes},
            &texts.bytes_max, "10GiB");
  AddTrie(table, out);
  table.Add({.name = "node-definition-bytes-per-day",
             .help = "disk space that the new names, processes and stacks of one node may take per day, in addition to "
                     "twice the bytes that the node sends; further names and processes are not stored",
             .value_name = "BYTES",
             .check = CheckNodeBytes},
            &texts.definition_bytes, "32MiB");
  table.Add({.name = "session-memory-bytes-max",
             .help = "largest amount of memory for the dictionaries of all collectors' sessions, divided among the "
                     "shards; when it is reached, the largest idle sessions are removed from memory, and their "
                     "collectors send their dictionaries again",
             .value_name = "BYTES",
             .check = CheckBytes},
            &texts.session_memory, "2GiB");
}

absl::Status TakeStore(const StoreTexts& texts, ReducerOptions& out) {
  ASSIGN_OR_RETURN(out.export_interval_ns, ParseExportInterval(texts.export_interval));
  ASSIGN_OR_RETURN(out.export_lag_max_ns, ParseExportLag(texts.export_lag_max));
  if (out.store.empty()) out.store = DefaultStoreUrl(out.data_dir);
  ASSIGN_OR_RETURN(out.raw_age_ns, ParseDurationNs(texts.raw_age));
  ASSIGN_OR_RETURN(out.sum_age_ns, ParseDurationNs(texts.sum_age));
  ASSIGN_OR_RETURN(out.event_age_ns, ParseDurationNs(texts.event_age));
  // Sums outlive the samples that they are made of.
  out.raw_age_ns = std::min(out.raw_age_ns, out.sum_age_ns);
  ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(texts.bytes_max));
  ASSIGN_OR_RETURN(const int64_t definition_bytes, ParseBytes(texts.definition_bytes));
  ASSIGN_OR_RETURN(const int64_t session_memory, ParseBytes(texts.session_memory));
  out.store_bytes_max = static_cast<uint64_t>(bytes);
  out.node_definition_bytes_per_day = static_cast<uint64_t>(definition_bytes);
  out.session_memory_bytes_max = static_cast<uint64_t>(session_memory);
  out.shards = static_cast<uint32_t>(texts.shards);
  return absl::OkStatus();
}

// Options of the sources of names, in addition to nodes (docs/symbols.md).
struct SymbolTexts {
  std::string bytes_max, file_bytes_max, memory_max, uploads, digests, debuginfod_urls;
};
void AddSymbols(Options& table, ReducerOptions& out, SymbolTexts& texts) {
  table.Add(
      {.name = "symbols-dir",
       .help = "directory of symbol tables; several reducers may share it; if empty, symbols/ in the data directory",
       .value_name = "DIR"},
      &out.symbols_dir, "");
  table.Add(
      {.name = "symbols-max-bytes",
       .help =
           "largest size of the symbol tables on disk: half of it is for the tables, the other half for uncompressed "
           "copies, which queries read; when the first half is full, the least trusted tables are removed; when the "
           "other half is full, its least recently used files are removed",
       .value_name = "BYTES",
       .check = CheckBytes},
      &texts.bytes_max, "4GiB");
  table.Add({.name = "symbol-file-max-bytes",
             .help = "largest size of a file with symbols that is uploaded, or fetched from a debuginfod server; "
                     "larger files are refused",
             .value_name = "BYTES",
             .check = CheckBytes},
            &texts.file_bytes_max, "8GiB");
  table.Add(
      {.name = "symbol-memory-max-bytes",
       .help =
           "largest amount of memory for reading one file with symbols; half of it is for the file's debug sections",
       .value_name = "BYTES",
       .check = CheckBytes},
      &texts.memory_max, "4GiB");
  table.Add({.name = "symbol-uploads",
             .help = "whether files with symbols may be uploaded, and symbol tables deleted; on: by callers with the "
                     "right upload or admin; off: both are refused",
             .value_name = "WHETHER",
             .values = {"on", "off"}},
            &texts.uploads, "on");
  table.Add({.name = "symbol-digests",
             .help = "whether the reducer compares the symbol table of a node with those of other nodes, from which it "
                     "requests only the digest of the table; off: a table from one node stays unconfirmed",
             .value_name = "WHETHER",
             .values = {"on", "off"}},
            &texts.digests, "on");
  table.Add({.name = "debug-dir",
             .help = "directory with debug files of sampled executables, such as /usr/lib/debug; may be repeated",
             .value_name = "DIR"},
            &out.debug_dirs);
  table.Add(
      {.name = "source-dir",
       .help = "directory with source files, from which the reducer shows the text of source lines; may be repeated",
       .value_name = "DIR"},
      &out.source_dirs);
  table.Add({.name = "debuginfod-urls",
             .help = "URLs of debuginfod servers, separated by spaces; the reducer requests debug files and source "
                     "files from them, in this order; the servers thus learn the build-ids of sampled executables",
             .value_name = "URLS"},
            &texts.debuginfod_urls, "");
}

absl::Status TakeSymbols(const SymbolTexts& texts, ReducerOptions& out) {
  ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(texts.bytes_max));
  ASSIGN_OR_RETURN(const int64_t file_bytes, ParseBytes(texts.file_bytes_max));
  ASSIGN_OR_RETURN(const int64_t memory, ParseBytes(texts.memory_max));
  out.symbol_memory_bytes_max = static_cast<uint64_t>(memory);
  out.symbols_bytes_max = static_cast<uint64_t>(bytes);
  out.symbol_file_bytes_max = static_cast<uint64_t>(file_bytes);
  out.symbol_uploads = texts.uploads == "on";
  out.symbol_digests = texts.digests == "on";
  std::istringstream urls(texts.debuginfod_urls);
  for (std::string url; urls >> url;) {
    if (!url.starts_with("http://") && !url.starts_with("https://")) {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("--debuginfod-urls: \"{}\" must begin with http:// or https://", url));
    }
    while (url.ends_with('/')) url.pop_back();
    out.debuginfod_urls.push_back(std::move(url));
  }
  return absl::OkStatus();
}

// Options of the metadata that samples belong to (docs/metadata.md).
struct MetadataTexts {
  std::string keep, wait;
  std::vector<std::string> labels, annotations, attributes;
};
void AddMetadata(Options& table, MetadataTexts& texts) {
  table.Add({.name = "metadata-keep",
             .help = "how long the metadata of a pod, container or other entity without samples is kept after the "
                     "entity's end; metadata of entities with samples is kept at least for --retention",
             .value_name = "DURATION",
             .check = CheckAge},
            &texts.keep, "1h");
  table.Add({.name = "metadata-wait",
             .help = "longest time that --export waits for a container's metadata, 0s to 10m; then it sends the "
                     "container's samples without this metadata; --metric counts samples this long after they arrive",
             .value_name = "DURATION",
             .check = CheckWait},
            &texts.wait, "10s");
  table.Add(
      {.name = "k8s-label",
       .help =
           "Kubernetes label that becomes an attribute of samples: [OBJECT:]KEY[=NAME]; OBJECT is pod if not given; "
           "KEY may be a regular expression; NAME is the attribute's name; may be repeated (docs/metadata.md)",
       .value_name = "RULE"},
      &texts.labels);
  table.Add({.name = "k8s-annotation",
             .help = "Kubernetes annotation that becomes an attribute of samples; RULE is the same as for --k8s-label; "
                     "may be repeated",
             .value_name = "RULE"},
            &texts.annotations);
  table.Add({.name = "resource-attribute",
             .help = "attribute of all samples; VALUE replaces any other value of the attribute KEY; write special "
                     "bytes as %XX, as in OTEL_RESOURCE_ATTRIBUTES; may be repeated",
             .value_name = "KEY=VALUE"},
            &texts.attributes);
}

absl::Status TakeMetadata(const MetadataTexts& texts, ReducerOptions& out) {
  ASSIGN_OR_RETURN(out.metadata_keep_ns, ParseDurationNs(texts.keep));
  ASSIGN_OR_RETURN(out.metadata_wait_ns, ParseDurationNs(texts.wait));
  for (const std::string& rule : texts.labels) {
    RETURN_IF_ERROR(WithContext(out.k8s_names.Add(K8sNameRules::Of::kLabel, rule), "--k8s-label"));
  }
  for (const std::string& rule : texts.annotations) {
    RETURN_IF_ERROR(WithContext(out.k8s_names.Add(K8sNameRules::Of::kAnnotation, rule), "--k8s-annotation"));
  }
  for (const std::string& text : texts.attributes) {
    const Attributes attributes = DecodeAttributes(text);
    if (attributes.empty()) {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("--resource-attribute: \"{}\" is not KEY=VALUE", text));
    }
    for (const auto& [key, value] : attributes) SetAttribute(out.resource, key, value);
  }
  return absl::OkStatus();
}

}  // namespace

std::string DefaultDataDirectory(bool is_root, const Options::Environment& environment) {
  if (is_root) return "/var/lib/tributary";
  auto value = [&](const char* name) {
    auto it = environment.find(name);
    return it != environment.end() ? it->second : std::string();
  };
  if (std::string state = value("XDG_STATE_HOME"); state.starts_with('/')) return state + "/tributary";
  if (std::string home = value("HOME"); home.starts_with('/')) return home + "/.local/state/tributary";
  return "tributary-data";
}

absl::StatusOr<ReducerOptions> ParseReducerOptions(int argc, const char* const* argv,
                                                   const Options::Environment& environment) {
  ReducerOptions out;
  Options table(
      "reducer",
      "Receives samples from kernel-collectors, finds the names of functions, and stores and shows the samples.");
  table.SetManual(ReducerManual);
  std::string intake_listen;
  table.Add({.name = "intake-listen",
             .help = "address that collectors connect to; PORT alone means 127.0.0.1:PORT",
             .value_name = "HOST:PORT",
             .flag_aliases = {"port", "p"},
             .check = CheckListen},
            &intake_listen, "127.0.0.1:8000");
  HttpTexts http;
  AddHttp(table, out, http);
  StoreTexts store;
  AddStore(table, environment, out, store);
  MetricTexts metrics;
  AddMetricOptions(table, metrics);
  AddStoreLimits(table, out, store);
  table.Add(
      {.name = "ports-file",
       .help = "file to which the reducer writes its port numbers as {\"intake\":N,\"http\":N} as soon as both "
               "ports are open, and \"metrics\":N with --metrics-listen; useful with port 0, for which the system "
               "chooses a free port",
       .value_name = "PATH"},
      &out.ports_file, "");
  AddHealthCheck(table, &out.health_check);
  SecurityTexts security;
  AddSecurity(table, out, security);
  SymbolTexts symbols;
  AddSymbols(table, out, symbols);
  MetadataTexts metadata;
  AddMetadata(table, metadata);
  ASSIGN_OR_RETURN(Options::Outcome outcome, table.Parse(argc, argv, environment));
  out.exit = outcome == Options::Outcome::kExit;
  if (out.exit) return out;
  ASSIGN_OR_RETURN(out.intake_listen, ParseListen(intake_listen));
  RETURN_IF_ERROR(TakeHttp(table, http, out));
  if (out.health_check) return out;
  RETURN_IF_ERROR(TakeStore(store, out));
  RETURN_IF_ERROR(TakeMetrics(metrics, out));
  RETURN_IF_ERROR(TakeSecurity(security, out));
  RETURN_IF_ERROR(TakeSymbols(symbols, out));
  RETURN_IF_ERROR(TakeMetadata(metadata, out));
  out.log = table.log_setup();
  out.values = table.values();
  return out;
}

}  // namespace tributary
