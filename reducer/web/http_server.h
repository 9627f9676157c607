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

// What comes behind the headers of an upload.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  // Hands all of it to `take`, piece by piece, until that says false. False: it did not come to its end.
  virtual bool Read(const std::function<bool(std::string_view piece)>& take) = 0;
};

struct WebRequest {
  std::string method;                         // as sent: "GET", "HEAD", "POST"…
  std::string path;                           // decoded, without the query
  std::string host;                           // the Host header; "" when there is none, or more than one
  std::map<std::string, std::string> params;  // of the query, decoded; of equal names the first
  HttpBody* body = nullptr;                   // of a PUT to Options::upload_path
};

struct WebResponse {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// HTTP/1.1 for answers that are made from the request line alone, and for uploads to one path: other bodies are not
// read, and a request that has one is answered and its connection closed. Sockets, deadlines and threads are ours;
// parsing and writing of messages is cpp-httplib's, which only http_server.cc sees. A connection takes a thread while
// it is open; more of them wait, up to a bound, and beyond that are answered 503. A request that is too long or too
// slow ends its connection.
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
  // Called on connection threads, several at once. What it throws becomes a 500.
  using Handler = std::function<WebResponse(const WebRequest&)>;

  // On a socket that listens already. An error is as errno says.
  static absl::StatusOr<std::unique_ptr<HttpServer>> StartOn(ListeningSocket listening, Options options,
                                                             Handler handler, Metrics& metrics);
  ~HttpServer();  // stops accepting, lets the answers under way end, joins

  uint16_t port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
