#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::cli {

// Sends requests to one reducer over HTTP, one at a time. An answer may have at most 256 MiB, because it is read into
// memory as a whole. Redirects are not followed, so that a token reaches only the named server.
class HttpClient {
 public:
  struct Options {
    std::string server;  // base URL such as "http://127.0.0.1:4040"; "http://" may be left out
    std::string token;   // sent as "Authorization: Bearer TOKEN"; "": none
    // PEM files for https://. If `tls_ca` is "", the system's authorities are trusted.
    std::string tls_ca, tls_cert, tls_key;
  };
  explicit HttpClient(Options options);

  using Parameters = std::vector<std::pair<std::string, std::string>>;
  // Returns the body of `GET path?parameters`. Unavailable: the server did not answer; the message names the server and
  // says what to do. ResourceExhausted: the answer is too large. InvalidArgument (HTTP status 400), Unauthenticated
  // (401), PermissionDenied (403), NotFound (404), Internal (others): the message contains the "error" text of the
  // answer. Unauthenticated also if the server's certificate is not trusted. No message contains the token, or the user
  // name and password of the URL.
  absl::StatusOr<std::string> Get(std::string_view path, const Parameters& parameters = {}) const;

  // Returns the body of the answer to `PUT path?parameters`. Returns the same errors as Get. If the server is busy
  // (status 503), sends the request again every 2 s, up to 60 times in all.
  absl::StatusOr<std::string> Put(std::string_view path, const Parameters& parameters, std::string_view content) const;
  absl::StatusOr<std::string> PutFile(std::string_view path, const Parameters& parameters, int file) const;

  // Returns the body of the answer to `DELETE path?parameters`. Returns the same errors as Get.
  absl::StatusOr<std::string> Delete(std::string_view path, const Parameters& parameters) const;

  // Sets a function that Get calls from time to time, at least once per second while it waits. If the function returns
  // true, Get ends soon with Cancelled.
  void CancelIf(std::function<bool()> is_cancelled) { is_cancelled_ = std::move(is_cancelled); }

  bool is_https() const;
  bool has_user() const { return shown_server_ != options_.server; }  // the URL has the form http://USER@HOST

 private:
  std::string UrlOf(std::string_view path, const Parameters& parameters) const;
  absl::StatusOr<std::string> PutFrom(std::string_view path, const Parameters& parameters,
                                      const std::function<size_t(uint64_t offset, char* to, size_t bytes)>& read,
                                      uint64_t bytes) const;

  Options options_;
  std::string shown_server_;  // `server` without user name and password
  std::function<bool()> is_cancelled_;
};

}  // namespace tributary::cli
