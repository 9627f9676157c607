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

// Where --metrics-listen says that metrics are served.
struct MetricsListen {
  std::optional<HostPort> address;  // nullopt: nowhere
  bool is_given = false;            // an operator gave it; else it is the default
};

// Adds --metrics-listen. `text` outlives the parse.
void AddMetricsListen(Options& table, std::string_view default_address, std::string* text);
// What it says, once the table was parsed.
absl::StatusOr<MetricsListen> TakeMetricsListen(const Options& table, const std::string& text);

// A small HTTP/1.1 server on the program's own loop: /metrics (Prometheus text 0.0.4), /healthz (200: the loop runs)
// and /readyz (200, or 503 and a sentence that says what is missing). It only reads. Clients may be anybody who reaches
// the address: 16 connections at most, a request's head of 8 KiB, 10 s for a request and for its answer. The text of
// the metrics is made four times a second at most. If there is no room for a new connection, the oldest one without a
// request goes, else the oldest: an answer is taken within a turn of the loop unless its client does not read. So no
// client keeps others out. On the loop's thread.
class MetricsServer {
 public:
  struct Limits {
    size_t connections_max = 16;
    uint64_t text_keep_ms = 250;  // how long a text of the metrics is given to everybody who asks
    HttpConnection::Limits connection;
  };
  // `not_ready` returns "" once the program does its job, else why it does not. nullptr: it is switched off, or the
  // default address cannot be had, which a warning says. An error says what to do about an address that was given.
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
