#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tributary {

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // Returns the value of a header, or "" if the response does not have the header. `name` must be in lower case.
  std::string_view Header(std::string_view name) const;
};

// Parses one HTTP/1.1 response (RFC 9112) as its bytes arrive. The body may have a Content-Length, be chunked, or end
// with the connection. The peer is not trusted: the head is limited to kHeadBytesMax, and the body to `body_bytes_max`.
//
// InvalidArgument: the bytes are not HTTP. ResourceExhausted: the head or the body is above its limit. The caller must
// not call Feed after an error, or after the end of the response. Not thread-safe.
class HttpResponseReader {
 public:
  static constexpr size_t kHeadBytesMax = 16u << 10;

  explicit HttpResponseReader(size_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}

  absl::Status Feed(std::string_view bytes);
  // Call it when the peer has closed the connection. InvalidArgument if the response is not complete.
  absl::Status End();
  bool done() const { return part_ == Part::kDone; }
  HttpResponse Take() && { return std::move(response_); }

 private:
  enum class Part { kHead, kBody, kBodyToEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };

  absl::Status ParseHead(std::string_view head);
  absl::Status ChooseBody();
  absl::Status TakeChunkSize(std::string_view line);
  absl::Status TakeBody();
  absl::Status Step(bool* more);

  const size_t body_bytes_max_;
  Part part_ = Part::kHead;
  std::string buffer_;  // received, not yet parsed
  uint64_t left_ = 0;   // remaining bytes of the body or of the current chunk
  size_t trailer_bytes_ = 0;
  HttpResponse response_;
};

}  // namespace tributary
