#include "reducer/web/api.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "reducer/store/damage.h"
#include "reducer/web/answers.h"
#include "reducer/web/host_check.h"
#include "reducer/web/status_answer.h"

namespace tributary {
namespace {

constexpr int64_t kSlotLookMs = 50;  // between two looks at whether the client still waits for its turn

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

int UploadStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 422;  // the file is valid, but has no symbols
    case absl::StatusCode::kResourceExhausted:
      return 413;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

WebResponse UploadError(const absl::Status& status) {
  return WebResponse{
      .status = UploadStatus(status.code()), .content_type = std::string(kJson), .body = ErrorJson(Message(status))};
}

WebResponse UploadsAreOff() {
  WebResponse response =
      UploadError(Error(absl::StatusCode::kInvalidArgument,
                        "this reducer accepts neither uploads of symbols nor their deletion (--symbol-uploads off)"));
  response.status = 403;
  return response;
}

absl::StatusOr<ExecutableId> ParseBuildId(const std::string& text) {
  const auto id = ExecutableId::FromString(text);
  if (id && id->known()) return *id;
  return Error(absl::StatusCode::kInvalidArgument, "build-id must be hexadecimal, as file(1) shows it");
}

WebResponse Text(int status, std::string body) {
  return WebResponse{.status = status, .content_type = std::string(kText), .body = std::move(body)};
}

WebResponse Json(absl::StatusOr<std::string> answer) {
  WebResponse response{.content_type = std::string(kJson)};
  if (answer.ok()) {
    response.body = *std::move(answer);
    return response;
  }
  response.status = HttpStatus(answer.status().code());
  response.body = ErrorJson(Message(store::AdviseOnDamage(answer.status())));
  return response;
}

// Receives the body into a file that is deleted when it is closed.
absl::StatusOr<Fd> Receive(HttpBody& body, const WebServer::Options& options) {
  Fd file(open(options.temporary_directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus("make a temporary file in", options.temporary_directory, errno);
  uint64_t bytes = 0;
  absl::Status status = absl::OkStatus();
  const bool whole = body.Read([&](std::string_view piece) {
    bytes += piece.size();
    if (bytes > options.upload_bytes_max) {
      status =
          Error(absl::StatusCode::kResourceExhausted,
                fmt::format("the file is larger than {} bytes (--symbol-file-max-bytes)", options.upload_bytes_max));
    }
    if (status.ok()) status = WriteToFile(file.get(), piece, "the uploaded file");
    return status.ok();
  });
  RETURN_IF_ERROR(status);
  if (!whole) return Error(absl::StatusCode::kInvalidArgument, "the upload was interrupted: send it again");
  return file;
}

uint64_t ResidentBytes() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/self/statm", "re"), fclose);
  unsigned long long size = 0, resident = 0;
  if (file == nullptr || fscanf(file.get(), "%llu %llu", &size, &resident) != 2) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

// One of the `queries_max` slots for running queries. The slot is taken as long as this object exists.
class Api::Slot {
 public:
  Slot(Api& api, int64_t wait_ms, const WebRequest& request) : api_(api), held_(Wait(api, wait_ms, request)) {
    if (held_) api_.running_.Add(1);
  }
  ~Slot() {
    if (!held_) return;
    api_.running_.Add(-1);
    api_.slots_.release();
  }
  Slot(const Slot&) = delete;
  bool held() const { return held_; }

 private:
  // Ends early if the client has disconnected, or if the server stops.
  static bool Wait(Api& api, int64_t wait_ms, const WebRequest& request) {
    for (; wait_ms > 0 && !request.is_cancelled() && !api.stopping_; wait_ms -= kSlotLookMs) {
      if (api.slots_.try_acquire_for(std::chrono::milliseconds(std::min(wait_ms, kSlotLookMs)))) return true;
    }
    return false;
  }

  Api& api_;
  const bool held_;
};

Api::Api(const WebServer::Options& options, const WebContext& context, std::span<const PageFile> page)
    : options_(options),
      context_(context),
      page_(page),
      started_(context.clock.Monotonic()),
      slots_(static_cast<ptrdiff_t>(std::max<size_t>(options.queries_max, 1))),
      upload_slots_(static_cast<ptrdiff_t>(std::max<size_t>(options.uploads_max, 1))),
      running_(context.metrics.AddGauge("tributary_query_running", "Queries that are running.")),
      refused_host_(Refusals("host")),
      refused_method_(Refusals("method")),
      refused_busy_(Refusals("busy")) {
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

Counter& Api::Refusals(std::string_view reason) {
  return context_.metrics.AddCounter(
      "tributary_query_refusals_total",
      "HTTP requests that were refused, by reason; host: a host name that is not allowed; method: neither GET nor "
      "HEAD; busy: too many queries or uploads were running.",
      {{"reason", std::string(reason)}});
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
  if (require_local_host_ && !IsLocalHost(request.host, options_.host)) {
    refused_host_.Add();
    WebResponse response =
        Json(ErrorJson(fmt::format("this server accepts the host names localhost, 127.0.0.1 and [::1], not '{}'; to "
                                   "allow other host names, set --http-listen to an address that is not loopback",
                                   EscapeForDisplay(std::string_view(request.host).substr(0, 64)))));
    response.status = 403;
    return response;
  }
  if (request.body != nullptr) return TakeUpload(request);
  if (request.method == "DELETE" && request.path == kUploadPath) return RemoveTable(request);
  if (request.method != "GET" && request.method != "HEAD") {
    refused_method_.Add();
    WebResponse response =
        Json(ErrorJson("only GET and HEAD are allowed, and PUT and DELETE of symbols at /api/v1/symbols"));
    response.status = 405;
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (auto it = queries_.find(request.path); it != queries_.end()) return RunQuery(it->second, request);
  if (request.path == "/api/v1/status") return Json(StatusAnswer(request));
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
    return Json(Error(absl::StatusCode::kNotFound,
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
    return Json(request.status());
  }
  Slot slot(*this, options_.queue_timeout_ms, web_request);
  if (!slot.held() || stopping_) {
    refused_busy_.Add();
    WebResponse response = Json(Error(absl::StatusCode::kUnavailable,
                                      "too many queries are running, or the reducer is stopping: try again soon"));
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  const MonotonicNs begin = context_.clock.Monotonic();
  request->is_cancelled = CancellationOf(web_request, begin);
  Answer answer = (this->*query.run)(params, *std::move(request));
  if (context_.heap != nullptr) context_.heap->Note();
  query.requests->Add();
  query.duration_ns->Add(static_cast<uint64_t>(context_.clock.Monotonic().value - begin.value));
  if (!answer.ok()) {
    query.errors->Add();
    LogDebug("query failed api={} error=\"{}\"", query.name, Message(answer.status()));
  }
  return Json(std::move(answer));
}

WebResponse Api::TakeUpload(const WebRequest& request) {
  if (context_.importer == nullptr) return UploadsAreOff();
  SymbolImporter::File file = {.name = "an upload"};
  if (auto id = request.params.find("build-id"); id != request.params.end()) {
    const absl::StatusOr<ExecutableId> claimed = ParseBuildId(id->second);
    if (!claimed.ok()) return UploadError(claimed.status());
    file.claimed = *claimed;
  }
  if (!upload_slots_.try_acquire() || stopping_) {
    refused_busy_.Add();
    WebResponse response =
        UploadError(Error(absl::StatusCode::kUnavailable,
                          "too many uploads are running, or the reducer is stopping: send the file again soon"));
    response.headers.emplace_back("Retry-After", "2");
    return response;
  }
  const std::unique_ptr<std::counting_semaphore<>, void (*)(std::counting_semaphore<>*)> slot(
      &upload_slots_, [](std::counting_semaphore<>* slots) { slots->release(); });
  const absl::StatusOr<Fd> received = Receive(*request.body, options_);
  if (!received.ok()) return UploadError(received.status());
  file.fd = received->get();
  const absl::StatusOr<SymbolImporter::Imported> imported = context_.importer->Import(file);
  if (!imported.ok()) return UploadError(imported.status());
  WebResponse response = Json(UploadJson(*imported));
  response.status = imported->kept.stored ? 201 : 200;
  return response;
}

// Browsers send a DELETE to another site only if that site allows it (CORS). This server allows it to no other site.
WebResponse Api::RemoveTable(const WebRequest& request) {
  if (context_.importer == nullptr) return UploadsAreOff();
  const auto given = request.params.find("build-id");
  const absl::StatusOr<ExecutableId> id = ParseBuildId(given == request.params.end() ? "" : given->second);
  if (!id.ok()) return Json(id.status());
  if (absl::Status removed = context_.symbols.Remove(*id); !removed.ok()) return Json(removed);
  return Json(RemovedTableJson(*id));
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
