#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "otlp/http_post.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Sends POST requests over HTTP/2 to one URL, one at a time. It does not know what an answer means. Over TLS, the
// receiver must choose "h2" by ALPN. Without TLS, the receiver must know that HTTP/2 comes (RFC 9113, 3.3). A proxy
// must allow CONNECT to the receiver.
//
// libcurl makes the connection (curl_transfer.h), and nghttp2 the frames. libcurl could do both, but its release 7.88
// of Debian 12 cannot use a connection without TLS twice. It also loses an answer that comes before the receiver has
// read the whole request, and trailers directly before the end of the connection.
//
// A request whose stream the receiver resets (RST_STREAM) may be retried, whatever the code of the reset is. The
// mapping of gRPC ("HTTP2 Transport Mapping" in its doc/PROTOCOL-HTTP2.md) makes some codes errors that may not be
// retried, such as Internal for PROTOCOL_ERROR. But these codes describe the connection, not the request. Proxies send
// them also when they have lost the receiver. Giving up would lose samples, while a retry at worst sends a request
// twice.
//
// Keeps the connection open for the next request, but for 5 minutes at most. After a request without a complete answer,
// the next request uses a new connection: the old one may be dead, for example because a load balancer has forgotten
// it.
//
// Only one thread at a time may use Send. Any thread may use Cancel.
class Http2Post {
 public:
  // `fields` are headers of each request, in addition to those of `options`. Their names are in lower case. Returns the
  // errors of CurlTransfer::Make.
  static absl::StatusOr<std::unique_ptr<Http2Post>> Make(const TransportOptions& options, const std::string& path,
                                                         const Headers& fields);
  ~Http2Post();
  Http2Post(const Http2Post&) = delete;
  Http2Post& operator=(const Http2Post&) = delete;

  // Sends `body`. `name` and `value` are one more header. Returns within `timeout_ns`. All errors may be retried:
  // Unavailable, or DeadlineExceeded after `timeout_ns`. After Cancel, returns Cancelled, and an answer without a head.
  PostResult Send(std::string_view body, const std::string& name, const std::string& value, int64_t timeout_ns);
  void Cancel();

 private:
  class Impl;
  explicit Http2Post(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::otlp
