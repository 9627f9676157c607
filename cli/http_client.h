#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::cli {

// Sends requests to one reducer over HTTP, one at a time. Answers are kept whole in memory, at most 256 MiB.
class HttpClient {
 public:
  // `server`: "http://127.0.0.1:4040"; a "/" at the end is dropped.
  explicit HttpClient(std::string server);

  using Parameters = std::vector<std::pair<std::string, std::string>>;
  // Returns the body of `GET path?parameters`. Unavailable: no answer; the message names the server and what to do.
  // ResourceExhausted: the answer is too large. InvalidArgument, NotFound, Internal: the server's own "error" text, for
  // 400, 404 and other codes.
  absl::StatusOr<std::string> Get(std::string_view path, const Parameters& parameters = {}) const;

  // Returns the body of the answer to `PUT path?parameters`. Errors as above; if the server is busy, the request is
  // retried for a while.
  absl::StatusOr<std::string> Put(std::string_view path, const Parameters& parameters, std::string_view content) const;
  absl::StatusOr<std::string> PutFile(std::string_view path, const Parameters& parameters, int file) const;

  const std::string& server() const { return server_; }

 private:
  std::string UrlOf(std::string_view path, const Parameters& parameters) const;
  absl::StatusOr<std::string> PutFrom(std::string_view path, const Parameters& parameters,
                                      const std::function<size_t(uint64_t offset, char* to, size_t bytes)>& read,
                                      uint64_t bytes) const;

  std::string server_;
};

}  // namespace tributary::cli
