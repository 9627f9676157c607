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

// HTTP/1.1 for services of this machine: those of a cloud's instance, at a link-local address, and Docker's, at a Unix
// socket. All of them speak it without TLS. A library would bring 30 others into the collector: 8.6 MB resident, 1.2 MB
// of it its own.

namespace tributary {

// Where a service listens: a Unix socket, else an address in figures. No name is resolved.
struct HttpEndpoint {
  std::string unix_path;
  std::string address;
  uint16_t port = 80;
};
// "http://169.254.169.254", "http://127.0.0.1:8080", "http://[fd00:ec2::254]/". InvalidArgument: anything else.
absl::StatusOr<HttpEndpoint> ParseHttpEndpoint(std::string_view url);

struct HttpRequest {
  std::string method = "GET";
  std::string path;  // with its query
  std::vector<std::pair<std::string, std::string>> headers;
};

// One request over a connection of its own, whatever status it is answered with; redirections are not followed.
// DeadlineExceeded: not all of the answer came until `deadline` (of the machine's monotonic clock). Unavailable or
// NotFound: nobody listens. InvalidArgument: what answers speaks no HTTP. ResourceExhausted: it says too much. Blocks;
// any thread.
absl::StatusOr<HttpResponse> HttpExchange(const HttpEndpoint& endpoint, const HttpRequest& request,
                                          MonotonicNs deadline, size_t body_bytes_max);

// How what asks a service reaches it, so that tests answer themselves.
using HttpAsk = std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)>;

}  // namespace tributary
