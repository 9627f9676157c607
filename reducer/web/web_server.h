#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/heap_trimmer.h"
#include "base/metrics.h"
#include "base/refusals.h"
#include "base/tls_context.h"
#include "reducer/access/access_control.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/query/query_engine.h"
#include "reducer/store/damage_list.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/source_fetcher.h"
#include "reducer/symbolizer/source_files.h"
#include "reducer/symbolizer/symbol_importer.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/symbolizer/symbol_store.h"
#include "reducer/web/http_socket.h"

namespace tributary {

// The web server reads status from the pipeline through this interface, in addition to the data in the store. The
// server calls the methods on any of its threads, until it is destroyed.
class StatusSource {
 public:
  virtual ~StatusSource() = default;
  virtual bool IsConnected(std::string_view node_id) const = 0;  // true: a session of that node is open
  virtual std::string NotReady() const = 0;  // "": ready; else a sentence that says what is not ready
  virtual uint32_t shards() const = 0;       // number of shards that new samples are written to
  // Damage of the store that /api/v1/status lists.
  virtual std::vector<store::DamageEntry> Damage() const { return {}; }
};

// The components that the web server uses. All of them must outlive the server.
struct WebContext {
  QueryEngine& engine;
  StatusSource& status;
  SymbolStore& symbols;
  SymbolImporter* importer;  // nullptr: uploads are refused
  const SymbolNotices& notices;
  const SourceFiles& sources;
  SourceFetcher* fetched_sources;  // nullptr: source files come only from `sources`
  store::Store& store;
  Metrics& metrics;
  const Clock& clock;
  const MetadataStore* metadata = nullptr;  // nullptr: /api/v1/status lists no clusters
  const RolloutLog* rollouts = nullptr;     // nullptr: /api/v1/rollouts lists no rollouts
  const Refusals* refusals = nullptr;       // nullptr: /api/v1/status lists no refusals
  HeapTrimmer* heap = nullptr;              // nullptr: nothing is done after a query
};

// The reducer's HTTP server. It serves the API (docs/api.md), /metrics, the health checks and the web page. At most
// `queries_max` of its `workers` threads run a query at the same time, and at most `queries_waiting_max` wait for their
// turn, up to `queue_timeout_ms` each. Other queries are answered with status 503. So some threads are always left for
// other requests. /healthz, /readyz and /metrics have threads and connections of their own. `access`
// decides who may do what (routes.h). To prevent DNS rebinding, a server that listens on loopback answers callers
// without a sign-in only if the Host is localhost, 127.0.0.1, [::1] or `host`. A request may have at most
// `request_bytes_max` and must arrive within `request_timeout_ms`; uploads have their own limits.
class WebServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    uint16_t port = 4040;  // 0: any free port, see port()
    size_t connections_max = 2'048;
    size_t connections_per_address_max = 256;  // loopback addresses are exempt
    uint64_t answer_bytes_max = 256ull << 20;  // of all answers that clients have not read yet
    size_t workers = 96;
    size_t queries_max = 4;
    size_t queries_waiting_max = 80;  // with queries_max and uploads_max, less than `workers`
    size_t request_bytes_max = 32u << 10;
    int64_t request_timeout_ms = 10'000;
    int64_t idle_timeout_ms = 60'000;  // between requests of a connection
    int64_t answer_grace_ms = 20'000;  // then a client that reads too slowly is disconnected
    int64_t queue_timeout_ms = 10'000;
    int64_t query_timeout_ms = 30'000;  // after this time a query is answered with status 504
    size_t uploads_max = 4;             // at the same time; more uploads are answered with status 503
    uint64_t upload_bytes_max = 8ull << 30;
    std::string temporary_directory = "/tmp";  // stores uploads, in files without a name
    // Who may do what. nullptr: on loopback, everyone may do everything; on other addresses, nobody may do anything.
    std::shared_ptr<AccessControl> access;
    std::shared_ptr<TlsContext> tls;  // nullptr: no TLS
  };
  // AlreadyExists: another process uses the port. Other codes: the server cannot listen on the address for another
  // reason.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(Options options, const WebContext& context);
  // Starts the server on a socket that already listens. Ignores `options.host` and `options.port`.
  static absl::StatusOr<std::unique_ptr<WebServer>> StartOn(ListeningSocket listening, Options options,
                                                            const WebContext& context);
  // Stops accepting connections, cancels the running queries, and waits until they have ended.
  ~WebServer();

  uint16_t port() const;
  // Decides with `access` about the callers of later requests. Any thread may call it.
  void SetAccess(std::shared_ptr<AccessControl> access);
  // See HttpServer::ChangeTls.
  absl::Status ChangeTls(TlsContext::Options options);

 private:
  struct Impl;
  explicit WebServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
