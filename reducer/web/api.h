#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/query/query_engine.h"
#include "reducer/web/http_message.h"
#include "reducer/web/page_files.h"
#include "reducer/web/params.h"
#include "reducer/web/query_slots.h"
#include "reducer/web/request_guard.h"
#include "reducer/web/web_server.h"

namespace tributary {

// Returns an answer with this JSON. For an error, returns the status of its code, and the object {"error": message}.
WebResponse JsonAnswer(absl::StatusOr<std::string> answer);

// Answers the HTTP requests for the paths in docs/api.md and for the web page. It does not use sockets: HttpServer
// calls Handle. Any number of threads may call Handle, but at most `queries_max` of them run a query at the same time.
class Api {
 public:
  // `options.access` must not be nullptr. `page` contains the files of the page. It is empty if the reducer was built
  // without the page.
  Api(const WebServer::Options& options, const WebContext& context, std::span<const PageFile> page);

  WebResponse Handle(const WebRequest& request);

  // Decides with `access` about the callers of later requests.
  void SetAccess(std::shared_ptr<AccessControl> access) { guard_.SetAccess(std::move(access)); }
  // Makes running queries end soon with an error, and refuses new queries.
  void Stop() { stopping_ = true; }

 private:
  using Answer = absl::StatusOr<std::string>;
  struct Query {
    std::string_view name;
    Answer (Api::*run)(const Params& params, QueryRequest request);
    Counter* requests = nullptr;
    Counter* errors = nullptr;
    Counter *duration_ns = nullptr, *cpu_ns = nullptr;
  };

  WebResponse Route(const WebRequest& request);
  // Returns whether a query for this request must end: the client is gone, the time is over, or the server stops.
  std::function<bool()> CancellationOf(const WebRequest& request, MonotonicNs begin) const;
  WebResponse RunQuery(Query& query, const WebRequest& web_request);
  Answer FlameGraphAnswer(const Params& params, QueryRequest request);
  Answer TopAnswer(const Params& params, QueryRequest request);
  Answer TimelineAnswer(const Params& params, QueryRequest request);
  Answer SeriesAnswer(const Params& params, QueryRequest request);
  Answer TypesAnswer(const Params& params, QueryRequest request);
  Answer LabelsAnswer(const Params& params, QueryRequest request);
  Answer StackHealthAnswer(const Params& params, QueryRequest request);
  Answer SymbolsAnswer(const Params& params, QueryRequest request);
  Answer LinesAnswer(const Params& params, QueryRequest request);
  Answer RolloutsAnswer(const Params& params, QueryRequest request);
  Answer ProcessEventsAnswer(const Params& params, QueryRequest request);
  Answer ProcessEventMarksAnswer(const Params& params, QueryRequest request);
  Answer ProcessEventProgramsAnswer(const Params& params, QueryRequest request);
  // Each of these two writes a line to the log that says who has changed what.
  WebResponse TakeUpload(const WebRequest& request, const Caller& caller);
  WebResponse RemoveTable(const WebRequest& request, const Caller& caller);
  absl::StatusOr<SymbolImporter::Imported> Import(const WebRequest& request, const ExecutableId& claimed);
  Answer StatusAnswer(const WebRequest& web_request);

  const WebServer::Options options_;
  const WebContext context_;
  RequestGuard guard_;
  PageFiles page_;
  const MonotonicNs started_;
  std::atomic<bool> stopping_{false};
  QuerySlots slots_;
  std::counting_semaphore<> upload_slots_;
  Counter &refused_method_, &refused_busy_;
  std::map<std::string, Query, std::less<>> queries_;  // by path; not changed after construction
};

}  // namespace tributary
