#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tributary {

// The request line and the headers of one HTTP/1 request, as far as a server of a few read-only pages needs them.
struct HttpRequestHead {
  std::string method;       // "GET"
  std::string path;         // "/metrics": without scheme, host and query
  bool keep_alive = false;  // the client will send more requests on this connection
  bool has_body = false;    // a body follows; the next request cannot be found without reading it
};

// What the bytes read so far are.
struct HttpHeadResult {
  size_t size = 0;      // bytes of the whole head; 0: it is not whole yet, or there is an error
  int error = 0;        // the status to answer with: 400, 414, 431 or 505; 0: no error
  std::string problem;  // with an error: one sentence for the client, without control bytes
  HttpRequestHead head;
};

// Parses the beginning of `bytes`, which come from anybody (RFC 9112). A request that two programs could understand in
// two ways is an error: a header line that goes on in the next, a space before a colon, a length beside chunks,
// HTTP/1.1 without exactly one Host. Empty lines before the request are skipped. Work is linear in the size of the
// head.
HttpHeadResult ParseHttpRequestHead(std::string_view bytes);

constexpr size_t kHttpRequestLineBytesMax = 4u << 10;  // more is answered 414
constexpr size_t kHttpHeadBytesMax = 8u << 10;         // more is answered 431

}  // namespace tributary
