#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "reducer/web/http_socket.h"

namespace tributary {

// The body of an upload, after the headers.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  // Passes the whole body to `take`, piece by piece, until `take` returns false. Returns false if the end was not
  // reached.
  virtual bool Read(const std::function<bool(std::string_view piece)>& take) = 0;
};

struct WebRequest {
  std::string method;                         // as sent: "GET", "HEAD", "POST"…
  std::string path;                           // decoded, without the query
  std::string host;                           // the Host header; "" when there is none, or more than one
  std::map<std::string, std::string> params;  // of the query, decoded; of equal names, the first
  HttpBody* body = nullptr;                   // for a PUT to Options::upload_path
};

struct WebResponse {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// HTTP/1.1 for answers that depend only on the request line, and for uploads to one path. Other bodies are not read: a
// request that has one is answered and its connection is closed. Sockets, deadlines and threads are our own code.
// cpp-httplib parses and writes messages; only http_server.cc uses it. A connection takes a thread while it is open.
// More connections wait, up to a limit; beyond it they are answered 503. A request that is too long or too slow ends
// its connection.
class HttpServer {
 public:
  struct Options {
    size_t connections_max = 32;
    size_t connections_waiting_max = 128;
    size_t request_bytes_max = 32u << 10;  // line and headers; a request line is at most 8 KiB all the same
    int64_t request_timeout_ms = 10'000;   // from its first byte to its last
    int64_t idle_timeout_ms = 5'000;       // between requests of a connection
    int64_t write_timeout_ms = 10'000;     // without any progress
    std::string upload_path;               // "": none
    uint64_t upload_bytes_max = 0;
    int64_t upload_stall_ms = 30'000;  // between two pieces of an upload
  };
  // Called on connection threads, several at once. If it throws, the answer is a 500.
  using Handler = std::function<WebResponse(const WebRequest&)>;

  // Starts the server on a socket that already listens. Errors are those of errno.
  static absl::StatusOr<std::unique_ptr<HttpServer>> StartOn(ListeningSocket listening, Options options,
                                                             Handler handler, Metrics& metrics);
  ~HttpServer();  // stops accepting, waits for running answers, joins

  uint16_t port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
