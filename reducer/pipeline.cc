#include "reducer/pipeline.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/capabilities.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/process_metrics.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "reducer/store/damage.h"

namespace tributary {
namespace {

// The threads with which queries read shards, in addition to their own.
size_t QueryThreads(uint32_t shards) {
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::max(shards, 1u)) - 1;
}

// Of the memory of a shard's sessions, the loop (decoders, executables) gets a quarter, and the writer (dictionaries
// with their texts) the rest. With the default options of a node, the writer needs about three times as much.
constexpr uint64_t kLoopShare = 4;

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? ErrnoStatus("create data directory", path, error.value()) : absl::OkStatus();
}

// Adds advice to an error of storing data. `flag`: the option that names the place of the data.
absl::Status StorageStatus(const absl::Status& status, std::string_view flag) {
  if (absl::IsPermissionDenied(status)) {
    return Error(status.code(),
                 fmt::format("{}: choose a {} that user id {} may write to", Message(status), flag, geteuid()));
  }
  if (absl::IsResourceExhausted(status)) return WithContext(status, fmt::format("no space for {}", flag));
  return WithContext(status, flag);
}

}  // namespace

Pipeline::Pipeline(const ReducerOptions& options, const Clock& clock, Metrics& metrics)
    : options_(options),
      clock_(clock),
      metrics_(metrics),
      refusals_(clock, metrics),
      heap_({}, metrics.AddCounter("tributary_reducer_heap_trims_total",
                                   "Times that free memory was returned to the system after a large query")),
      opt_outs_(clock, metrics),
      symbol_notices_(clock),
      source_files_(options.source_dirs) {}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(const ReducerOptions& options, const Clock& clock,
                                                          Metrics& metrics) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(options, clock, metrics));
  RETURN_IF_ERROR(pipeline->Build());
  return pipeline;
}

absl::Status Pipeline::Build() {
  RETURN_IF_ERROR(Listen());
  RETURN_IF_ERROR(WithContext(DropAllCapabilities(), "drop capabilities"));  // before the first thread
  // Reads the files again, with the rights that reloads will have. A file that only a capability can read is thus an
  // error now, not at the first rotation.
  ASSIGN_OR_RETURN(std::shared_ptr<intake::Security> security, OpenSecurity(options_));
  acceptor_->SetSecurity(std::move(security));
  ASSIGN_OR_RETURN(std::shared_ptr<AccessControl> access, OpenAccess(options_));
  ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> http_tls, OpenHttpTls());
  RETURN_IF_ERROR(OpenStores());
  RETURN_IF_ERROR(OpenShards());
  RETURN_IF_ERROR(StartWeb(std::move(access), std::move(http_tls)));
  RETURN_IF_ERROR(OpenExporters());
  OpenProfileMetrics();
  AddMetrics();
  for (const auto& shard : shards_) shard->Start();
  accept_thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "accept");
    accept_loop_->Run();
  });
  ready_ = true;
  RETURN_IF_ERROR(WritePortsFile());
  LogReady();
  return absl::OkStatus();
}

void Pipeline::LogReady() const {
  const AccessControl::Options& access = options_.http_access;
  if (!http_is_loopback_ && !access.token_file.empty() && access.proxies.empty() && options_.http_tls_cert.empty()) {
    LogWarning("HTTP tokens are sent in plain text: use --http-tls-cert and --http-tls-key");
  }
  LogInfo("reducer ready page={} sign_in={} intake={}:{} tls={} tokens={} data={} shards={}", PageUrl(),
          http_is_loopback_ && !access.has_loopback_proxy() ? "loopback"
          : access.allow_anonymous                          ? "anonymous"
                                                            : "required",
          options_.intake_listen.host, acceptor_port_,
          options_.tls_cert.empty() ? "no"
          : options_.tls_ca.empty() ? "yes"
                                    : "client certificates",
          options_.intake_token_file.empty() ? "no" : "yes", options_.data_dir, options_.shards);
}

absl::Status Pipeline::OpenStores() {
  RETURN_IF_ERROR(StorageStatus(MakeDirectories(options_.data_dir), "--data-dir"));
  store::StoreOptions options;
  options.shards = options_.shards;
  options.raw_age_ns = options_.raw_age_ns;
  options.sum_age_ns = options_.sum_age_ns;
  options.event_age_ns = options_.event_age_ns;
  options.bytes_max = options_.store_bytes_max;
  options.nodes_per_day_max = static_cast<uint32_t>(options_.trie_nodes_per_day);
  options.machine_nodes_per_day_min = static_cast<uint32_t>(options_.node_trie_nodes_per_day);
  options.refusals = &refusals_;
  options.opt_outs = &opt_outs_;
  options.node_definition_bytes_per_day = options_.node_definition_bytes_per_day;
  options.dictionary_bytes_max = SessionBytesOfShard() - SessionBytesOfShard() / kLoopShare;
  absl::StatusOr<Stores> stores = tributary::OpenStores(options_.store, options, clock_, metrics_);
  RETURN_IF_ERROR(StorageStatus(store::AdviseOnDamage(stores.status()), StoreFlag()));
  store_ = std::move(stores->samples);
  damage_ = stores->damage;
  RETURN_IF_ERROR(OpenSymbols());
  symbol_parts_ = std::make_unique<intake::SymbolParts>(intake::SymbolParts::Options(), metrics_);
  OpenMetadata(*std::move(stores));
  engine_ = std::make_unique<QueryEngine>(*store_, *symbols_, QueryLimits(), joiner_.get(),
                                          QueryThreads(store_->shard_count()));
  return absl::OkStatus();
}

// Returns the option that names the place of the store.
std::string_view Pipeline::StoreFlag() const {
  return options_.store == DefaultStoreUrl(options_.data_dir) ? "--data-dir" : "--store";
}

void Pipeline::OpenMetadata(Stores stores) {
  MetadataStore::Options options;
  options.store = std::move(stores.entities);
  options.keep_ns = options_.metadata_keep_ns;
  options.observer = &opt_outs_;
  options.keep_used_ns = std::max({options_.sum_age_ns, options_.event_age_ns, options_.metadata_keep_ns});
  metadata_ =
      std::make_unique<MetadataStore>(std::move(options), options_.k8s_names, attribute_names_, clock_, metrics_);
  rollouts_ = std::make_unique<RolloutLog>(
      RolloutLog::Options{.store = std::move(stores.rollouts), .keep_ns = options_.sum_age_ns}, *metadata_, clock_,
      metrics_);
  metadata_worker_ = std::make_unique<ingest::MetadataWorker>(ingest::MetadataWorker::Options(), *rollouts_, metrics_);
  joiner_ =
      std::make_unique<ResourceJoiner>(*metadata_, options_.k8s_names, attribute_names_, options_.resource, metrics_);
  metadata_->Start([this] { MarkUsedMetadata(); });
  services_ = std::make_unique<ServiceWatch>(
      ServiceWatch::Options{.states = std::move(stores.service_states), .keep_ns = options_.sum_age_ns}, *store_,
      *joiner_, *rollouts_, clock_, metrics_);
  services_->Start();
}

// Joins recent samples with metadata. Metadata that is found in this way is kept with the samples.
void Pipeline::MarkUsedMetadata() {
  const UnixNs now = clock_.Unix();
  const store::TimeRange range{UnixNs{now.value - 2 * MetadataStore::kMarkUsedNs}, now};
  for (uint32_t shard = 0; shard < store_->shard_count(); ++shard) {
    const absl::StatusOr<std::unique_ptr<store::StoreReader>> reader = store_->OpenReader(shard);
    if (!reader.ok()) continue;  // tries again the next time
    ResourceCache resources(*joiner_, range);
    // Rows that cannot be read now are looked up the next time.
    (void)(*reader)->ScanProcesses(range, [&resources](const store::ProcessRow& row) {
      resources.Of(row);
      return absl::OkStatus();
    });
  }
}

absl::Status Pipeline::OpenSymbols() {
  SymbolStore::Options options;
  options.directory = options_.symbols_dir.empty() ? options_.data_dir + "/symbols" : options_.symbols_dir;
  options.disk_bytes_max = options_.symbols_bytes_max;
  options.unused_ns = options_.sum_age_ns;
  options.ask_digests = options_.symbol_digests;
  options.notices = &symbol_notices_;
  options.refusals = &refusals_;
  absl::StatusOr<std::unique_ptr<SymbolStore>> opened = SymbolStore::Open(std::move(options), clock_, metrics_);
  if (!opened.ok()) return WithContext(opened.status(), "--symbols-dir");
  symbols_ = *std::move(opened);
  // Removes the former file of symbol tables. Nodes are asked for its contents again.
  for (const char* suffix : {"", "-wal", "-shm"}) unlink((options_.data_dir + "/symbols.db" + suffix).c_str());
  symbol_extractor_ =
      std::make_unique<SymbolExtractor>(SymbolExtractor::Options{.memory_bytes_max = options_.symbol_memory_bytes_max},
                                        SymbolExtractor::SpawnSelf, metrics_);
  symbol_importer_ = std::make_unique<SymbolImporter>(*symbols_, *symbol_extractor_, symbol_notices_);
  debug_files_ =
      std::make_unique<DebugFileFinder>(DebugFileFinder::Options{.directories = options_.debug_dirs,
                                                                 .urls = options_.debuginfod_urls,
                                                                 .executables = [this] { return AllExecutables(); },
                                                                 .file_bytes_max = options_.symbol_file_bytes_max,
                                                                 .temporary_directory = options_.data_dir},
                                        *symbols_, *symbol_importer_, symbol_notices_, clock_, metrics_);
  symbol_importer_->SetFindShared([this](const ExecutableId& id) { return debug_files_->FindShared(id); });
  if (!options_.debuginfod_urls.empty()) OpenSourceFetcher();
  return absl::OkStatus();
}

// People wait for the text of a line: a server that is slower than this counts as having no text.
void Pipeline::OpenSourceFetcher() {
  source_servers_ = std::make_unique<DebuginfodClient>(
      DebuginfodClient::Options{.urls = options_.debuginfod_urls,
                                .file_bytes_max = SourceFiles::kFileBytesMax,
                                .temporary_directory = options_.data_dir,
                                .connect_timeout_ms = 5'000,
                                .stall_timeout_s = 10,
                                .total_timeout_s = 60},
      [this] { return source_fetcher_->stopping(); }, clock_, metrics_);
  source_fetcher_ = std::make_unique<SourceFetcher>(
      SourceFetcher::Options{},
      [this](const ExecutableId& id, const std::string& path) { return source_servers_->FetchSource(id, path); },
      symbol_notices_, clock_, metrics_);
}

std::vector<store::DamageEntry> Pipeline::Damage() const {
  return damage_ != nullptr ? damage_->ListDamage() : std::vector<store::DamageEntry>();
}

absl::StatusOr<std::vector<store::ExecutableRow>> Pipeline::AllExecutables() {
  std::vector<store::ExecutableRow> all;
  for (uint32_t shard = 0; shard < store_->shard_count(); ++shard) {
    ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_->OpenReader(shard));
    ASSIGN_OR_RETURN(const std::vector<store::ExecutableRow> rows, reader->Executables());
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::vector<std::pair<std::string, Loop*>> Pipeline::loops() {
  std::vector<std::pair<std::string, Loop*>> loops = {{"accept", accept_loop_.get()}};
  for (size_t i = 0; i < shards_.size(); ++i) loops.emplace_back(fmt::format("shard {}", i), &shards_[i]->loop());
  return loops;
}

// Shards beyond --shards hold older data. No node is sent to them, but their retention continues.
absl::Status Pipeline::OpenShards() {
  for (uint32_t number = 0; number < store_->shard_count(); ++number) {
    absl::StatusOr<std::unique_ptr<store::ShardWriter>> writer = store_->OpenWriter(number);
    RETURN_IF_ERROR(StorageStatus(store::AdviseOnDamage(writer.status()), StoreFlag()));
    ingest::Shard::Options options;
    options.number = number;
    options.server = IntakeOptions();
    options.old_days = {
        .ages = {.raw_ns = options_.raw_age_ns, .sum_ns = options_.sum_age_ns, .event_ns = options_.event_age_ns},
        .node_days_max = static_cast<uint32_t>(options_.node_old_days)};
    options.session_memory_bytes_max = SessionBytesOfShard() / kLoopShare;
    options.metadata = metadata_worker_.get();
    options.opt_outs = &opt_outs_;
    shards_.push_back(
        std::make_unique<ingest::Shard>(std::move(options), *std::move(writer), *symbols_, clock_, metrics_));
  }
  return absl::OkStatus();
}

absl::Status Pipeline::StartWeb(std::shared_ptr<AccessControl> access, std::shared_ptr<TlsContext> tls) {
  WebServer::Options web;
  web.access = std::move(access);
  web.tls = std::move(tls);
  web.connections_max = static_cast<size_t>(options_.http_connections_max);
  web.connections_per_address_max = static_cast<size_t>(options_.http_connections_per_address_max);
  web.answer_bytes_max = options_.http_answer_bytes_max;
  web.upload_bytes_max = options_.symbol_file_bytes_max;
  web.temporary_directory = options_.data_dir;
  ASSIGN_OR_RETURN(
      web_, WebServer::StartOn(
                std::move(http_listening_), std::move(web),
                WebContext{*engine_, *this, *symbols_, options_.symbol_uploads ? symbol_importer_.get() : nullptr,
                           symbol_notices_, source_files_, source_fetcher_.get(), *store_, metrics_, clock_,
                           metadata_.get(), rollouts_.get(), &refusals_, &heap_}));
  return absl::OkStatus();
}

absl::Status Pipeline::OpenExporters() {
  ASSIGN_OR_RETURN(const std::vector<ExportUrl> urls, ResolveExportUrls(options_.exports, options_.export_variables));
  for (size_t i = 0; i < urls.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Exporter>> exporter =
        MakeExporter(urls[i], options_.export_variables, *store_, *symbols_,
                     {.joiner = joiner_.get(),
                      .rollouts = rollouts_.get(),
                      .metadata_wait_ns = options_.metadata_wait_ns,
                      .lag_max_ns = options_.export_lag_max_ns,
                      .interval_ns = options_.export_interval_ns},
                     clock_, metrics_);
    if (!exporter.ok()) {
      return WithContext(exporter.status(), fmt::format("--export {}", ShownExportUrl(options_.exports[i])));
    }
    exporters_.push_back(*std::move(exporter));
  }
  return absl::OkStatus();
}

void Pipeline::OpenProfileMetrics() {
  if (options_.metrics.empty()) return;
  profile_metrics_ =
      std::make_unique<ProfileMetrics>(ProfileMetricsLoop::Options{.specs = options_.metrics,
                                                                   .series_max = options_.metric_series_max,
                                                                   .total_series_max = options_.metric_total_series_max,
                                                                   .joiner = joiner_.get(),
                                                                   .hold_ns = options_.metadata_wait_ns},
                                       *store_, symbols_->lookup(), clock_, metrics_);
}

void Pipeline::AddMetrics() {
  AddProcessMetrics(metrics_, "reducer");
  metrics_.AddCallback("tributary_reducer_disk_bytes",
                       "Bytes of the files in the store's directory, without its subdirectories", false, {},
                       [store = store_.get()] { return static_cast<double>(store->disk_bytes()); });
  metrics_.AddCallback("tributary_reducer_resident_bytes", "Resident memory of the process, in bytes", false, {},
                       [] { return static_cast<double>(ResidentBytes()); });
}

absl::Status Pipeline::WritePortsFile() const {
  if (options_.ports_file.empty()) return absl::OkStatus();
  const std::string metrics = metrics_server_ == nullptr ? "" : fmt::format(",\"metrics\":{}", metrics_server_->port());
  const std::string text = fmt::format("{{\"intake\":{},\"http\":{}{}}}\n", acceptor_port_, http_port(), metrics);
  const std::string_view parts[] = {text};
  return WithContext(WriteWholeFile(options_.ports_file, parts, /*durable=*/false), "--ports-file");
}

std::string Pipeline::PageUrl() const {
  const std::string& host = options_.http_listen.host;
  const bool any = host == "0.0.0.0" || host == "::";
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}/", options_.http_tls_cert.empty() ? "http" : "https",
                     any  ? "127.0.0.1"
                     : v6 ? "[" + host + "]"
                          : host,
                     http_port());
}

bool Pipeline::IsConnected(std::string_view node_id) const {
  return shards_[store::ShardOf(node_id, options_.shards)]->IsConnected(node_id);
}

std::string Pipeline::NotReady() const { return ready_ ? "" : "the reducer is starting or stopping"; }

Pipeline::~Pipeline() {
  ready_ = false;
  // A caller that waits for a file to be read would delay the rest.
  if (debug_files_ != nullptr) {
    symbol_extractor_->Stop();
    debug_files_->Stop();
  }
  if (source_fetcher_ != nullptr) source_fetcher_->Stop();
  profile_metrics_.reset();
  if (services_ != nullptr) services_->Stop();
  if (metadata_ != nullptr) metadata_->Stop();
  if (accept_thread_.joinable()) {
    accept_loop_->Post([this] {
      acceptor_.reset();
      metrics_server_.reset();
      accept_loop_->Stop();
    });
    accept_thread_.join();
  }
  acceptor_.reset();
  metrics_server_.reset();
  // First everything is stored. Then exporters make their last pass while collectors read their acknowledgements.
  auto on_all_shards = [this](void (ingest::Shard::*call)()) {
    std::vector<std::thread> threads;
    for (const auto& shard : shards_) threads.emplace_back([&shard, call] { ((*shard).*call)(); });
    return threads;
  };
  for (std::thread& thread : on_all_shards(&ingest::Shard::Drain)) thread.join();
  std::vector<std::thread> closing = on_all_shards(&ingest::Shard::Stop);
  std::vector<std::thread> flushing;
  for (auto& exporter : exporters_) flushing.emplace_back([&exporter] { exporter.reset(); });
  for (std::thread& thread : closing) thread.join();
  for (std::thread& thread : flushing) thread.join();
  web_.reset();
}

}  // namespace tributary
