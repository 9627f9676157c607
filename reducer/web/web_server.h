#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/query/query_engine.h"
#include "reducer/store/store.h"
#include "reducer/symbolizer/source_fetcher.h"
#include "reducer/symbolizer/source_files.h"
#include "reducer/symbolizer/symbol_importer.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/symbolizer/symbol_store.h"
#include "reducer/web/http_socket.h"

namespace tributary {

// The status that the pipeline reports to the web server, in addition to the store's data. Any thread may call every
// method, at any time between Start and the server's destruction.
class StatusSource {
 public:
  virtual ~StatusSource() = default;
  virtual bool IsConnected(std::string_view node_id) const = 0;  // a session of that node is open now
  virtual std::string NotReady() const = 0;  // "": ready; else a sentence that says what is not ready
  virtual uint32_t shards() const = 0;       // shards that are written now
};

// The data that the web server shows, and the destination of uploads. All of it must outlive the server.
struct WebContext {
  QueryEngine& engine;
  StatusSource& status;
  SymbolStore& symbols;
  SymbolImporter* importer;  // nullptr: uploads are refused
  const SymbolNotices& notices;
  const SourceFiles& sources;
  SourceFetcher* fetched_sources;  // nullptr: no server for other source files
  store::Store& store;
  Metrics& metrics;
  const Clock& clock;
  const MetadataStore* metadata = nullptr;  // nullptr: there are no clusters
  const RolloutLog* rollouts = nullptr;     // nullptr: there are no rollouts
};

// The HTTP side of the reducer: docs/api.md, /metrics, the health checks and the page. Answers on its own threads:
// `connections_max` threads hold connections, and at most `queries_max` of them run a query at once. The others wait up
// to `queue_timeout_ms` and then answer 503. Against DNS rebinding, a server bound to loopback answers only if Host is
// localhost, 127.0.0.1, [::1] or `host`. A request must arrive in full within `request_bytes_max` and
// `request_timeout_ms`.
class WebServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    uint16_t port = 4040;  // 0: any free port, see port()
    size_t connections_max = 32;
    size_t queries_max = 4;
    size_t request_bytes_max = 32u << 10;
    int64_t request_timeout_ms = 10'000;
    int64_t queue_timeout_ms = 10'000;
    int64_t query_timeout_ms = 30'000;  // then 504
    size_t uploads_max = 4;             // at once; more are answered 503
    uint64_t upload_bytes_max = 8ull << 30;
    std::string temporary_directory = "/tmp";  // stores uploads, in files without a name
  };
  // AlreadyExists: the port is in use; other codes: the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(Options options, const WebContext& context);
  // Starts on a socket that already listens: `options.port` is ignored, `options.host` only counts for the Host check.
  static absl::StatusOr<std::unique_ptr<WebServer>> StartOn(ListeningSocket listening, Options options,
                                                            const WebContext& context);
  ~WebServer();  // stops accepting, waits for running answers, joins

  uint16_t port() const;

 private:
  struct Impl;
  explicit WebServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
