#include "reducer/web/api.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "base/heap.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread_cpu.h"
#include "reducer/store/damage.h"
#include "reducer/web/answers.h"
#include "reducer/web/routes.h"
#include "reducer/web/status_answer.h"

namespace tributary {
namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";
constexpr std::string_view kText = "text/plain; charset=utf-8";

int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 422;  // the request is well-formed, but too large; the message says what to narrow
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

WebResponse Text(int status, std::string body) {
  return WebResponse{.status = status, .content_type = std::string(kText), .body = std::move(body)};
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

WebResponse JsonAnswer(absl::StatusOr<std::string> answer) {
  WebResponse response{.content_type = std::string(kJson)};
  if (answer.ok()) {
    response.body = *std::move(answer);
    return response;
  }
  response.status = HttpStatus(answer.status().code());
  response.body = ErrorJson(Message(store::AdviseOnDamage(answer.status())));
  return response;
}

Api::Api(const WebServer::Options& options, const WebContext& context, std::span<const PageFile> page)
    : options_(options),
      context_(context),
      guard_(options.access, options.host, context.metrics),
      page_(page),
      started_(context.clock.Monotonic()),
      slots_({.running_max = options.queries_max,
              .waiting_max = options.queries_waiting_max,
              .wait_ms = options.queue_timeout_ms},
             context.metrics),
      upload_slots_(static_cast<ptrdiff_t>(std::max<size_t>(options.uploads_max, 1))),
      refused_method_(RequestRefusals(context.metrics, "method")),
      refused_busy_(RequestRefusals(context.metrics, "busy")) {
  auto add = [&](std::string_view name, Answer (Api::*run)(const Params&, QueryRequest)) {
    Metrics::Labels labels = {{"api", std::string(name)}};
    Query query{.name = name, .run = run};
    query.requests =
        &context.metrics.AddCounter("tributary_query_requests_total", "Queries that the reducer has run.", labels);
    query.errors = &context.metrics.AddCounter("tributary_query_errors_total",
                                               "Queries that were answered with an error.", labels);
    query.duration_ns = &context.metrics.AddDurationCounter(
        "tributary_query_duration_seconds_total",
        "Time that queries took, without the time that they waited for other queries to end.", labels);
    query.cpu_ns = &context.metrics.AddDurationCounter(
        "tributary_query_cpu_seconds_total",
        "CPU time that queries took on their own threads, without that of threads that read shards for all queries.",
        labels);
    queries_.emplace(fmt::format("/api/v1/{}", name), query);
  };
  add("flamegraph", &Api::FlameGraphAnswer);
  add("top", &Api::TopAnswer);
  add("timeline", &Api::TimelineAnswer);
  add("series", &Api::SeriesAnswer);
  add("labels", &Api::LabelsAnswer);
  add("types", &Api::TypesAnswer);
  add("stack-health", &Api::StackHealthAnswer);
  add("symbols", &Api::SymbolsAnswer);
  add("lines", &Api::LinesAnswer);
  add("rollouts", &Api::RolloutsAnswer);
  add("events", &Api::ProcessEventsAnswer);
  add("events/marks", &Api::ProcessEventMarksAnswer);
  add("events/programs", &Api::ProcessEventProgramsAnswer);
}

WebResponse Api::Handle(const WebRequest& request) {
  WebResponse response = Route(request);
  auto add = [&response](const char* name, const char* value) { response.headers.emplace_back(name, value); };
  add("Content-Security-Policy",
      "default-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'");
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  if (!HasField(response.headers, "Cache-Control")) add("Cache-Control", "no-store");
  return response;
}

WebResponse Api::Route(const WebRequest& request) {
  RequestGuard::Outcome checked = guard_.Check(request);
  if (checked.refusal) return *std::move(checked.refusal);
  if (request.body != nullptr) return TakeUpload(request, checked.caller);
  if (request.method == "DELETE" && request.path == kUploadPath) return RemoveTable(request, checked.caller);
  if (request.method != "GET" && request.method != "HEAD") {
    refused_method_.Add();
    WebResponse response =
        JsonAnswer(ErrorJson("only GET and HEAD are allowed, and PUT and DELETE of symbols at /api/v1/symbols"));
    response.status = 405;
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (auto it = queries_.find(request.path); it != queries_.end()) return RunQuery(it->second, request);
  if (request.path == kWhoAmIPath) return JsonAnswer(CallerJson(checked.caller));
  if (request.path == "/api/v1/status") return JsonAnswer(StatusAnswer(request));
  if (request.path == "/healthz") return Text(200, "ok\n");
  if (request.path == "/readyz") {
    std::string not_ready = context_.status.NotReady();
    return not_ready.empty() ? Text(200, "ok\n") : Text(503, not_ready + "\n");
  }
  if (request.path == "/metrics") {
    WebResponse response = Text(200, context_.metrics.PrometheusText());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  if (request.path.starts_with("/api/")) {
    return JsonAnswer(Error(absl::StatusCode::kNotFound,
                            fmt::format("there is no {}; docs/api.md lists the API, which is under /api/v1/",
                                        EscapeForDisplay(std::string_view(request.path).substr(0, 64)))));
  }
  if (std::optional<WebResponse> file = page_.Find(request)) return *std::move(file);
  if (request.path == "/" && page_.is_empty()) {
    return Text(200,
                "This reducer was built without its web page. The API is under /api/v1/ (docs/api.md), for example\n"
                "/api/v1/status, /api/v1/top?from=-5m; the metrics are at /metrics.\n");
  }
  return Text(404, "not found\n");
}

std::function<bool()> Api::CancellationOf(const WebRequest& request, MonotonicNs begin) const {
  const int64_t deadline = begin.value + options_.query_timeout_ms * kNsPerMs;
  return [this, &request, deadline] {
    return stopping_.load() || request.is_cancelled() || context_.clock.Monotonic().value >= deadline;
  };
}

WebResponse Api::RunQuery(Query& query, const WebRequest& web_request) {
  const Params& params = web_request.params;
  absl::StatusOr<QueryRequest> request = ParseQuery(params, context_.clock.Unix());
  if (!request.ok()) {
    query.errors->Add();
    return JsonAnswer(request.status());
  }
  const QuerySlot slot(slots_, [&] { return stopping_.load() || web_request.is_cancelled(); });
  if (!slot.held() || stopping_) {
    refused_busy_.Add();
    WebResponse response = JsonAnswer(Error(
        absl::StatusCode::kUnavailable, "too many queries are running, or the reducer is stopping: try again soon"));
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  const MonotonicNs begin = context_.clock.Monotonic();
  request->is_cancelled = CancellationOf(web_request, begin);
  const int64_t cpu_begin_ns = ThreadCpuNs();
  Answer answer = (this->*query.run)(params, *std::move(request));
  query.cpu_ns->Add(static_cast<uint64_t>(ThreadCpuNs() - cpu_begin_ns));
  if (context_.heap != nullptr) context_.heap->Note();
  query.requests->Add();
  query.duration_ns->Add(static_cast<uint64_t>(context_.clock.Monotonic().value - begin.value));
  if (!answer.ok()) {
    query.errors->Add();
    LogDebug("query failed api={} error=\"{}\"", query.name, Message(answer.status()));
  }
  return JsonAnswer(std::move(answer));
}

Api::Answer Api::StatusAnswer(const WebRequest& web_request) {
  QueryRequest request;
  request.is_cancelled = CancellationOf(web_request, context_.clock.Monotonic());
  ASSIGN_OR_RETURN(std::vector<store::NodeStatus> nodes, context_.engine.QueryNodes(request));
  std::vector<bool> connected;
  for (const store::NodeStatus& node : nodes) connected.push_back(context_.status.IsConnected(node.node_id));
  ASSIGN_OR_RETURN(std::vector<SymbolFiles::Row> tables, context_.symbols.List());
  ReducerStatus reducer{.uptime_s = (context_.clock.Monotonic().value - started_.value) / kNsPerSecond,
                        .cpu_seconds = CpuSeconds(),
                        .rss_bytes = ResidentBytes(),
                        .disk_bytes = context_.store.disk_bytes(),
                        .shards = context_.status.shards(),
                        .symbol_tables = tables.size()};
  for (const SymbolFiles::Row& table : tables) reducer.disk_bytes += table.stored_bytes;
  reducer.damage = context_.status.Damage();
  if (context_.refusals != nullptr) reducer.refusals = context_.refusals->List();
  if (context_.metadata != nullptr) reducer.clusters = context_.metadata->Clusters();
  return StatusJson(nodes, connected, reducer);
}

}  // namespace tributary
