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

// The address of --metrics-listen, where metrics are served.
struct MetricsListen {
  std::optional<HostPort> address;  // nullopt: metrics are not served
  bool is_given = false;            // true: an operator set it; false: the default
};

// Adds --metrics-listen. `text` must outlive the parse.
void AddMetricsListen(Options& table, std::string_view default_address, std::string* text);
// Returns the option's value. Call it after the table was parsed.
absl::StatusOr<MetricsListen> TakeMetricsListen(const Options& table, const std::string& text);

// A small HTTP/1.1 server on the program's own loop: /metrics (Prometheus text 0.0.4), /healthz (200: the loop runs)
// and /readyz (200, or 503 and a sentence that says what is missing). It is read-only. Any client that reaches the
// address may connect. Limits: 16 connections, a request head of 8 KiB, 10 s for a request and for its answer. The text
// of the metrics is made at most four times a second. If a new connection exceeds the limit, the server closes another
// one: the oldest of the connections to which it is not writing an answer, or the oldest of all if it is writing to all
// of them. So clients that send nothing, or do not read, cannot keep others out. Use it on the loop's thread.
class MetricsServer {
 public:
  struct Limits {
    size_t connections_max = 16;
    uint64_t text_keep_ms = 250;  // time for which all requests get the same text of the metrics
    HttpConnection::Limits connection;
  };
  // `not_ready` returns "" when the program does its work, else one sentence that says what is missing. Open returns
  // nullptr if the server is switched off, or if the default address is not available (this is logged as a warning). If
  // an address that an operator set is not available, it returns an error with advice.
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
