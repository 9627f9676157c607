#include "base/metrics_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr std::string_view kOption = "metrics-listen";

absl::Status CheckMetricsListen(std::string_view text) {
  if (text.empty() || text == "off" || ParseListen(text).ok()) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument,
               "must be HOST:PORT (127.0.0.1:4041, [::1]:4041), a port without a host, or off");
}

std::string_view RefusalName(HttpRefusal refusal) {
  switch (refusal) {
    case HttpRefusal::kMalformed:
      return "malformed";
    case HttpRefusal::kTooLarge:
      return "too_large";
    case HttpRefusal::kMethod:
      return "method";
    case HttpRefusal::kPath:
      return "path";
    case HttpRefusal::kSlow:
      return "slow";
    case HttpRefusal::kBusy:
      return "busy";
  }
  return "malformed";
}

}  // namespace

void AddMetricsListen(Options& table, std::string_view default_address, std::string* text) {
  table.Add({.name = std::string(kOption),
             .help = "address where the program serves /metrics, /healthz and /readyz; PORT alone means "
                     "127.0.0.1:PORT; off: they are not served",
             .value_name = "HOST:PORT",
             .check = CheckMetricsListen},
            text, default_address);
}

absl::StatusOr<MetricsListen> TakeMetricsListen(const Options& table, const std::string& text) {
  MetricsListen listen{.address = std::nullopt, .is_given = table.IsGiven(kOption)};
  if (text.empty() || text == "off") return listen;
  ASSIGN_OR_RETURN(listen.address, ParseListen(text));
  return listen;
}

MetricsServer::MetricsServer(Loop& loop, Limits limits, Metrics& metrics, std::function<std::string()> not_ready)
    : loop_(loop),
      limits_(limits),
      metrics_(metrics),
      not_ready_(std::move(not_ready)),
      requests_(metrics.AddCounter("tributary_http_requests_total",
                                   "Well-formed HTTP requests that the --metrics-listen port received")),
      open_(metrics.AddGauge("tributary_http_connections", "Open HTTP connections to the --metrics-listen port")) {
  for (size_t i = 0; i < kHttpRefusalCount; ++i) {
    refusals_[i] = &metrics.AddCounter("tributary_http_refusals_total",
                                       "HTTP requests and connections to the --metrics-listen port that were refused, "
                                       "by reason",
                                       {{"reason", std::string(RefusalName(static_cast<HttpRefusal>(i)))}});
  }
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Open(Loop& loop, const MetricsListen& listen,
                                                                   Metrics& metrics,
                                                                   std::function<std::string()> not_ready) {
  return Open(loop, listen, Limits(), metrics, std::move(not_ready));
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Open(Loop& loop, const MetricsListen& listen,
                                                                   Limits limits, Metrics& metrics,
                                                                   std::function<std::string()> not_ready) {
  std::unique_ptr<MetricsServer> server;
  if (!listen.address) return server;
  const HostPort& address = *listen.address;
  server.reset(new MetricsServer(loop, limits, metrics, std::move(not_ready)));
  auto listener =
      TcpListener::Listen(loop, address.host, address.port,
                          [raw = server.get()](std::unique_ptr<TcpStream> s) { raw->Accept(std::move(s)); });
  if (listener.ok()) {
    server->listener_ = *std::move(listener);
    server->host_ = address.host;
    return server;
  }
  const std::string cause = absl::IsAlreadyExists(listener.status())
                                ? fmt::format("{} is in use by another program", FormatHostPort(address))
                                : Message(listener.status());
  if (listen.is_given) {
    return Error(listener.status().code(),
                 fmt::format("--{}: {}. Choose another address, or 'off' to serve no metrics", kOption, cause));
  }
  LogWarning("metrics are not served cause=\"{}\": set --{} to another HOST:PORT, or to 'off'", cause, kOption);
  return std::unique_ptr<MetricsServer>();
}

std::string MetricsServer::url() const {
  return fmt::format("http://{}/metrics", FormatHostPort({.host = host_, .port = port()}));
}

void MetricsServer::MakeRoom() {
  if (connections_.size() < limits_.connections_max) return;
  refusals_[static_cast<size_t>(HttpRefusal::kBusy)]->Add();
  auto oldest = std::find_if(connections_.begin(), connections_.end(), [](const auto& c) { return c->waiting(); });
  connections_.erase(oldest == connections_.end() ? connections_.begin() : oldest);
}

void MetricsServer::Accept(std::unique_ptr<TcpStream> stream) {
  MakeRoom();
  const auto place = connections_.emplace(connections_.end());
  *place = std::make_unique<HttpConnection>(
      loop_, std::move(stream), limits_.connection,
      HttpConnection::Callbacks{
          .answer = [this](const HttpRequestHead& head) { return Answer(head); },
          .refused = [this](HttpRefusal refusal) { refusals_[static_cast<size_t>(refusal)]->Add(); },
          .closed =
              [this, place] {
                connections_.erase(place);
                open_.Set(static_cast<int64_t>(connections_.size()));
              }});
  open_.Set(static_cast<int64_t>(connections_.size()));
}

const std::string& MetricsServer::Text() {
  const uint64_t now_ms = uv_now(loop_.raw());
  if (now_ms >= text_until_ms_) {
    text_ = metrics_.PrometheusText();
    text_until_ms_ = now_ms + limits_.text_keep_ms;
  }
  return text_;
}

HttpAnswer MetricsServer::Answer(const HttpRequestHead& head) {
  requests_.Add();
  if (head.path != "/healthz" && head.path != "/readyz" && head.path != "/metrics") {
    return HttpAnswer{.status = 404, .body = "This port serves /metrics, /healthz and /readyz.\n"};
  }
  if (head.method != "GET" && head.method != "HEAD") {
    return HttpAnswer{.status = 405, .body = "This port answers only GET and HEAD requests.\n"};
  }
  if (head.path == "/healthz") return HttpAnswer{.body = "ok\n"};
  if (head.path == "/readyz") {
    const std::string missing = not_ready_();
    if (missing.empty()) return HttpAnswer{.body = "ok\n"};
    return HttpAnswer{.status = 503, .body = missing + "\n"};
  }
  return HttpAnswer{.body = Text(), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace tributary
