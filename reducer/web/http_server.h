#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "base/tls_context.h"
#include "reducer/web/http_message.h"
#include "reducer/web/http_session.h"
#include "reducer/web/http_sessions.h"
#include "reducer/web/http_socket.h"

namespace tributary {

// An HTTP/1.1 server that passes requests to a handler. It reads request bodies only for uploads (PUT) to one path.
//
// One thread owns all connections, in an event loop. So a connection that is idle, or that sends or reads slowly, takes
// no thread. HttpSession has the deadlines, and HttpSessions the limits. The handler runs on `workers` threads. Up to
// `waiting_max` requests wait for one of them. More requests are answered with status 503.
//
// The reserved paths must be answered even if everything else is busy. They have two threads, a queue and some
// connections of their own.
//
// With TLS, the thread of the connections also does the handshakes. A client that does not use TLS gets an answer that
// says so.
//
// Boost.Beast parses the requests (docs/decisions/0002-http-server.md).
class HttpServer {
 public:
  struct Options {
    HttpLimits limits;
    HttpCaps caps;
    size_t workers = 32;
    size_t waiting_max = 256;
    std::vector<std::string> reserved_paths;
    std::shared_ptr<TlsContext> tls;  // nullptr: no TLS; only the server's thread may use it
  };

  // Starts the server on a socket that already listens. Several calls of the handler may run at the same time.
  static std::unique_ptr<HttpServer> StartOn(ListeningSocket listening, Options options, const HttpHandler& handler,
                                             Metrics& metrics);
  // Stops accepting connections, cancels the running handlers, and waits until they have returned. Clients get a
  // fraction of a second to read their answers.
  ~HttpServer();

  uint16_t port() const;
  // Makes new connections use other certificates. Call it only if the server has TLS. Returns the errors of
  // TlsContext::Change. Blocks until the server's thread has read the files. May be called on any other thread.
  absl::Status ChangeTls(TlsContext::Options options);

  // Serves a connection that was accepted elsewhere, for example on a port that also carries another protocol.
  // `first_bytes` were read from it before. May be called on any thread.
  void Take(std::unique_ptr<DetachedStream> connection, std::string first_bytes);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
