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

// HTTP/1.1 for services of this machine: a cloud's instance service at a link-local address, and Docker at a Unix
// socket. All of them use HTTP without TLS. A library would bring 30 other libraries into the collector: 8.6 MB
// resident, of which 1.2 MB are private.

namespace tributary {

// Where a service listens: a Unix socket, else a numeric address. No name is resolved.
struct HttpEndpoint {
  std::string unix_path;
  std::string address;
  uint16_t port = 80;
};
// Parses "http://169.254.169.254", "http://127.0.0.1:8080", "http://[fd00:ec2::254]/". InvalidArgument: anything else.
absl::StatusOr<HttpEndpoint> ParseHttpEndpoint(std::string_view url);

struct HttpRequest {
  std::string method = "GET";
  std::string path;  // with its query
  std::vector<std::pair<std::string, std::string>> headers;
};

// Sends one request over its own connection and returns the response with any status. Does not follow redirections.
// DeadlineExceeded: the whole answer did not arrive by `deadline` (of the machine's monotonic clock). Unavailable or
// NotFound: no service listens. InvalidArgument: the answer is not HTTP. ResourceExhausted: the answer is too large.
// Blocks; any thread.
absl::StatusOr<HttpResponse> HttpExchange(const HttpEndpoint& endpoint, const HttpRequest& request,
                                          MonotonicNs deadline, size_t body_bytes_max);

// Sends a request to a service. Tests replace it with their own answers.
using HttpAsk = std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)>;

}  // namespace tributary
