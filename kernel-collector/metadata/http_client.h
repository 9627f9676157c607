#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "kernel-collector/metadata/http_response.h"

// An HTTP/1.1 client for two services: a cloud's instance service at a link-local address, and Docker at a Unix socket.
// Both use HTTP without TLS. An HTTP library would load 30 other libraries into the collector: 8.6 MB of resident
// memory, of which 1.2 MB are private.

namespace tributary {

// The address of a service: the Unix socket `unix_path`, or, if that is empty, a numeric `address`. Host names are not
// resolved.
struct HttpEndpoint {
  std::string unix_path;
  std::string address;
  uint16_t port = 80;
};
// Parses "http://169.254.169.254", "http://127.0.0.1:8080", "http://[fd00:ec2::254]/". InvalidArgument: `url` has
// another form.
absl::StatusOr<HttpEndpoint> ParseHttpEndpoint(std::string_view url);

struct HttpRequest {
  std::string method = "GET";
  std::string path;  // with its query
  std::vector<std::pair<std::string, std::string>> headers;
};

// Sends one request over a new connection. Returns the response, whatever its status is. Does not follow redirections.
// DeadlineExceeded: the whole response had not arrived at `deadline` (a time of CLOCK_MONOTONIC). Unavailable or
// NotFound: no service listens. InvalidArgument: the response is not HTTP. ResourceExhausted: the response is too
// large. Blocks. Thread-safe.
absl::StatusOr<HttpResponse> HttpExchange(const HttpEndpoint& endpoint, const HttpRequest& request,
                                          MonotonicNs deadline, size_t body_bytes_max);

// A function that sends a request to a service. Tests pass functions that return fixed answers.
using HttpAsk = std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)>;

}  // namespace tributary
