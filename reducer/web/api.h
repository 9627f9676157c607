#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/query/query_engine.h"
#include "reducer/web/http_message.h"
#include "reducer/web/page_files.h"
#include "reducer/web/params.h"
#include "reducer/web/web_server.h"

namespace tributary {

// The path for uploads (PUT) of files with symbols, and for the deletion (DELETE) of symbol tables.
constexpr std::string_view kUploadPath = "/api/v1/symbols";

// Answers the HTTP requests for the paths in docs/api.md and for the web page. It does not use sockets: HttpServer
// calls Handle. Any number of threads may call Handle, but at most `queries_max` of them run a query at the same time.
class Api {
 public:
  // `page` contains the files of the page. It is empty if the reducer was built without the page.
  Api(const WebServer::Options& options, const WebContext& context, std::span<const PageFile> page);

  WebResponse Handle(const WebRequest& request);

  // Accepts requests with any Host header. Before this call, Handle refuses requests with a Host header that
  // IsLocalHost (host_check.h) does not accept.
  void ServeAnyHost() { require_local_host_ = false; }
  // Makes running queries end soon with an error, and refuses new queries.
  void Stop() { stopping_ = true; }

 private:
  using Answer = absl::StatusOr<std::string>;
  struct Query {
    std::string_view name;
    Answer (Api::*run)(const Params& params, QueryRequest request);
    Counter* requests = nullptr;
    Counter* errors = nullptr;
    Counter* duration_ns = nullptr;
  };
  class Slot;

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
  WebResponse TakeUpload(const WebRequest& request);
  WebResponse RemoveTable(const WebRequest& request);
  Answer StatusAnswer(const WebRequest& web_request);
  Counter& Refusals(std::string_view reason);

  const WebServer::Options options_;
  const WebContext context_;
  PageFiles page_;
  const MonotonicNs started_;
  std::atomic<bool> require_local_host_{true};
  std::atomic<bool> stopping_{false};
  std::counting_semaphore<> slots_, upload_slots_;
  Gauge& running_;
  Counter &refused_host_, &refused_method_, &refused_busy_;
  std::map<std::string, Query, std::less<>> queries_;  // by path; not changed after construction
};

}  // namespace tributary
