#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/heap_trimmer.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/metrics_server.h"
#include "base/refusals.h"
#include "base/tls_context.h"
#include "intake/server/acceptor.h"
#include "intake/server/server_options.h"
#include "reducer/access/access_control.h"
#include "reducer/export/exporter.h"
#include "reducer/ingest/metadata_worker.h"
#include "reducer/ingest/shard.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/metadata/opt_outs.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/metadata/service_watch.h"
#include "reducer/options.h"
#include "reducer/profile_metrics/profile_metrics.h"
#include "reducer/query/query_engine.h"
#include "reducer/store/store.h"
#include "reducer/stores.h"
#include "reducer/symbolizer/debug_file_finder.h"
#include "reducer/symbolizer/debuginfod_client.h"
#include "reducer/symbolizer/source_fetcher.h"
#include "reducer/symbolizer/source_files.h"
#include "reducer/symbolizer/symbol_extractor.h"
#include "reducer/symbolizer/symbol_importer.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/symbolizer/symbol_store.h"
#include "reducer/web/http_socket.h"
#include "reducer/web/web_server.h"

namespace tributary {

// The whole reducer: collectors → acceptor → shards → store → query engine → web server, exporters and metrics. Start
// builds and starts these components. The destructor stops them within 5 s, unless a commit to the store hangs. In this
// time it first stores and acknowledges the queued batches. Then it exports stored data for at most 3.5 s. Only the
// main thread may use a pipeline; each component has its own threads. Start opens the ports first and then drops all
// capabilities of the process: a port below 1024 may need a capability, and no later step needs one.
class Pipeline : private StatusSource {
 public:
  // `clock` and `metrics` must outlive the pipeline. An error message is one line for the user: it says what failed
  // and, for common errors, what to do about it.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Start(const ReducerOptions& options, const Clock& clock,
                                                         Metrics& metrics);
  ~Pipeline() override;

  // Loads the certificates and tokens of the intake and of the web server again, from the files in `options`. Uses
  // these files, `options.certificate_names_node` and `options.http_access` for future connections and requests.
  // Ignores all other options. If a file cannot be used, or if the web server would begin or cease to use TLS, returns
  // an error and changes nothing. The error names the options. Blocks until both servers use the new credentials.
  absl::Status ReplaceCredentials(const ReducerOptions& options);
  // Returns the event loops and their names, for a check that none of them is stuck. The loops exist as long as the
  // pipeline.
  std::vector<std::pair<std::string, Loop*>> loops();

  uint16_t intake_port() const { return acceptor_port_; }
  uint16_t http_port() const { return web_->port(); }

  // For LimitHeap. Threads of shards and queries allocate at the same time, so there are more heaps than in a
  // collector. Blocks of batches and of SQLite are in the heaps, and only the large tables of queries are outside.
  static constexpr HeapLimits kHeapLimits = {
      .heaps_max = 8, .large_block_bytes = 1u << 20, .kept_at_top_bytes = 16u << 20};
  // Returns memory to the system if a large query has ended. Call it every kTrimMs. May block for some 10 ms.
  static constexpr uint64_t kTrimMs = 10'000;
  void TrimHeap() { heap_.Tick(); }

 private:
  Pipeline(const ReducerOptions& options, const Clock& clock, Metrics& metrics);
  absl::Status Build();
  absl::Status OpenStores();
  absl::Status OpenSymbols();
  std::string_view StoreFlag() const;
  uint64_t SessionBytesOfShard() const { return options_.session_memory_bytes_max / options_.shards; }
  void OpenMetadata(Stores stores);
  void MarkUsedMetadata();
  void OpenSourceFetcher();
  absl::StatusOr<std::vector<store::ExecutableRow>> AllExecutables();
  absl::Status OpenShards();
  absl::StatusOr<std::shared_ptr<intake::Security>> OpenSecurity(const ReducerOptions& options) const;
  absl::StatusOr<std::shared_ptr<AccessControl>> OpenAccess(const ReducerOptions& options) const;
  absl::StatusOr<std::shared_ptr<TlsContext>> OpenHttpTls() const;
  void LogReady() const;
  intake::ServerOptions IntakeOptions();
  absl::Status Listen();
  absl::Status ListenForHttp();
  absl::Status StartWeb(std::shared_ptr<AccessControl> access, std::shared_ptr<TlsContext> tls);
  absl::Status OpenExporters();
  void OpenProfileMetrics();
  absl::Status WritePortsFile() const;
  void AddMetrics();
  std::string PageUrl() const;

  // StatusSource, any thread
  bool IsConnected(std::string_view node_id) const override;
  std::string NotReady() const override;
  uint32_t shards() const override { return options_.shards; }
  std::vector<store::DamageEntry> Damage() const override;

  const ReducerOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  Refusals refusals_;
  HeapTrimmer heap_;
  OptOuts opt_outs_;
  std::unique_ptr<store::Store> store_;
  store::DamageSource* damage_ = nullptr;  // of store_
  std::unique_ptr<SymbolStore> symbols_;
  SymbolNotices symbol_notices_;
  const SourceFiles source_files_;
  std::unique_ptr<DebuginfodClient> source_servers_;  // these two exist only if --debuginfod-urls is given
  std::unique_ptr<SourceFetcher> source_fetcher_;
  std::unique_ptr<SymbolExtractor> symbol_extractor_;
  std::unique_ptr<SymbolImporter> symbol_importer_;
  std::unique_ptr<DebugFileFinder> debug_files_;
  std::unique_ptr<intake::SymbolParts> symbol_parts_;
  AttributeNames attribute_names_;
  std::unique_ptr<MetadataStore> metadata_;
  std::unique_ptr<RolloutLog> rollouts_;                     // receives metadata before metadata_ does
  std::unique_ptr<ingest::MetadataWorker> metadata_worker_;  // passes the shards' metadata to rollouts_
  std::unique_ptr<ResourceJoiner> joiner_;
  std::unique_ptr<ServiceWatch> services_;
  std::unique_ptr<QueryEngine> engine_;
  std::vector<std::unique_ptr<intake::Limits>> limits_;  // the acceptor's, then one per shard
  std::vector<std::unique_ptr<ingest::Shard>> shards_;
  // Handshakes and checks of credentials run on a loop of their own, because unknown clients decide how much CPU time
  // they use. This work must not delay the shards.
  std::unique_ptr<Loop> accept_loop_;
  std::unique_ptr<intake::Acceptor> acceptor_;  // on accept_loop_
  std::thread accept_thread_;
  uint16_t acceptor_port_ = 0;
  std::unique_ptr<MetricsServer> metrics_server_;  // on accept_loop_; nullptr: --metrics-listen is off
  ListeningSocket http_listening_;                 // until web_ takes it
  bool http_is_loopback_ = true;
  std::vector<std::unique_ptr<Exporter>> exporters_;
  std::unique_ptr<ProfileMetrics> profile_metrics_;  // only if --metric is given
  std::atomic<bool> ready_{false};
  std::unique_ptr<WebServer> web_;
};

}  // namespace tributary
