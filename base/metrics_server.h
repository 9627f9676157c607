#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/http_connection.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/tcp.h"

namespace tributary {

// The value of the option --metrics-listen.
struct MetricsListen {
  std::optional<HostPort> address;  // nullopt: metrics are not served
  bool is_given = false;            // true: an operator set it; false: the default
};

// Adds the option --metrics-listen to `table`. `text` must exist until the table was parsed.
void AddMetricsListen(Options& table, std::string_view default_address, std::string* text);
// Returns the value of --metrics-listen. Call it after the table was parsed.
absl::StatusOr<MetricsListen> TakeMetricsListen(const Options& table, const std::string& text);

// A small HTTP/1.1 server on the program's own loop: /metrics (Prometheus text 0.0.4), /healthz (200: the loop runs)
// and /readyz (200, or 503 and a sentence that says what is missing). It only answers GET and HEAD, without
// authentication: any client that can connect to the address may read. Limits: 16 connections, a request head (request
// line and headers) of 8 KiB, 10 s for a request and another 10 s for its answer. The text of the metrics is computed
// at most four times a second. If there are too many connections, the server accepts the new one and closes another:
// the oldest connection to which no answer is being written, or else the oldest of all. So clients that send nothing,
// or do not read, cannot block other clients. Use it on the loop's thread.
class MetricsServer {
 public:
  struct Limits {
    size_t connections_max = 16;
    uint64_t text_keep_ms = 250;  // time for which all requests get the same text of the metrics
    HttpConnection::Limits connection;
  };
  // Opens the server. `not_ready` must return "" if the program is ready, and otherwise one sentence that says what is
  // missing. Returns nullptr if metrics are not served, or if the default address is not available, which is logged as
  // a warning. If the operator has set the address and it is not available, returns an error with advice.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Open(Loop& loop, const MetricsListen& listen, Metrics& metrics,
                                                             std::function<std::string()> not_ready);
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Open(Loop& loop, const MetricsListen& listen, Limits limits,
                                                             Metrics& metrics, std::function<std::string()> not_ready);

  uint16_t port() const { return listener_->port(); }
  std::string url() const;  // "http://127.0.0.1:4041/metrics"

 private:
  MetricsServer(Loop& loop, Limits limits, Metrics& metrics, std::function<std::string()> not_ready);

  void Accept(std::unique_ptr<TcpStream> stream);
  void MakeRoom();
  HttpAnswer Answer(const HttpRequestHead& head);
  const std::string& Text();

  Loop& loop_;
  const Limits limits_;
  std::string host_;
  const Metrics& metrics_;
  const std::function<std::string()> not_ready_;
  Counter& requests_;
  std::array<Counter*, kHttpRefusalCount> refusals_;
  Gauge& open_;
  std::string text_;
  uint64_t text_until_ms_ = 0;                              // on the loop's clock
  std::list<std::unique_ptr<HttpConnection>> connections_;  // oldest first
  std::unique_ptr<TcpListener> listener_;
};

}  // namespace tributary
