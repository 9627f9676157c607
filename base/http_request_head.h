#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tributary {

// The parts of an HTTP/1 request's first line and headers that a server with a few read-only pages needs.
struct HttpRequestHead {
  std::string method;       // "GET"
  std::string path;         // "/metrics": without scheme, host and query
  bool keep_alive = false;  // the connection stays open for more requests
  bool has_body = false;    // a body follows; the next request cannot be found without reading it
};

// The result of parsing the bytes that have arrived so far.
struct HttpHeadResult {
  size_t size = 0;      // bytes of the whole head; 0: the head is incomplete, or there is an error
  int error = 0;        // the status of the answer: 400, 414, 431 or 505; 0: no error
  std::string problem;  // if there is an error: one sentence for the client, without control bytes
  HttpRequestHead head;
};

// Parses the head of a request (the request line and headers) at the start of `bytes` (RFC 9112). `bytes` may be
// hostile. Returns an error for a request that a proxy and this server could understand differently, such as a header
// that continues on the next line, a space before a colon, both Content-Length and Transfer-Encoding, or HTTP/1.1
// without exactly one Host. Skips empty lines before the request. The time is proportional to the size of the head.
HttpHeadResult ParseHttpRequestHead(std::string_view bytes);

constexpr size_t kHttpRequestLineBytesMax = 4u << 10;  // a longer line is answered with 414
constexpr size_t kHttpHeadBytesMax = 8u << 10;         // a longer head is answered with 431

}  // namespace tributary
