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

// The body of an upload request.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  // Passes the body to `take` in pieces. Stops if `take` returns false. Returns true if the whole body was passed.
  virtual bool Read(const std::function<bool(std::string_view piece)>& take) = 0;
};

struct WebRequest {
  std::string method;                         // as sent: "GET", "HEAD", "POST"…
  std::string path;                           // decoded, without the query
  std::string host;                           // the Host header; "" when there is none, or more than one
  std::map<std::string, std::string> params;  // of the URL, decoded; if a name is given twice, its first value
  HttpBody* body = nullptr;                   // for a PUT to Options::upload_path
};

struct WebResponse {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// An HTTP/1.1 server that passes the request line and the Host header to a handler. It reads request bodies only for
// uploads (PUT) to one path. After a request with a body, it sends the answer and closes the connection. Our own code
// handles sockets, deadlines and threads. The library cpp-httplib parses and writes messages; only http_server.cc uses
// it. Each connection that is being served uses a thread. If no thread is free, up to `connections_waiting_max`
// connections wait; more connections are answered with status 503. If a request is too long or too slow, its connection
// is closed.
class HttpServer {
 public:
  struct Options {
    size_t connections_max = 32;
    size_t connections_waiting_max = 128;
    size_t request_bytes_max = 32u << 10;  // request line and headers; the request line also has a limit of 8 KiB
    int64_t request_timeout_ms = 10'000;   // from its first byte to its last
    int64_t idle_timeout_ms = 5'000;       // between requests of a connection
    int64_t write_timeout_ms = 10'000;     // without any progress
    std::string upload_path;               // "": none
    uint64_t upload_bytes_max = 0;
    int64_t upload_stall_ms = 30'000;  // maximum time between two pieces of an upload
  };
  // The handler runs on the threads of connections, so several calls may run at the same time. If it throws an
  // exception, the answer has status 500.
  using Handler = std::function<WebResponse(const WebRequest&)>;

  // Starts the server on a socket that already listens. Returns an error if no eventfd can be created.
  static absl::StatusOr<std::unique_ptr<HttpServer>> StartOn(ListeningSocket listening, Options options,
                                                             Handler handler, Metrics& metrics);
  ~HttpServer();  // stops accepting connections, and waits for the answers in progress

  uint16_t port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
