#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::cli {

// Asks one reducer over HTTP, one question at a time. Answers are held whole, at most 256 MiB.
class HttpClient {
 public:
  // "http://127.0.0.1:4040"; a "/" at the end is dropped.
  explicit HttpClient(std::string server);

  using Parameters = std::vector<std::pair<std::string, std::string>>;
  // The body of `GET path?parameters`. Unavailable: no answer; the message names the server and what to do.
  // InvalidArgument, NotFound, Internal: the server's own "error", for 400, 404 and the rest.
  absl::StatusOr<std::string> Get(std::string_view path, const Parameters& parameters = {}) const;

  const std::string& server() const { return server_; }

 private:
  std::string server_;
};

}  // namespace tributary::cli
