#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "reducer/web/http_message.h"

namespace tributary {

// Limit of the request line. A longer one is answered with 414.
constexpr size_t kWebRequestLineBytesMax = 8u << 10;

// Parses one HTTP/1 request (RFC 9112). Boost.Beast parses the message. This class refuses the messages that a proxy
// and this server could understand differently: a header that continues on the next line, a line that ends without CR,
// both Content-Length and Transfer-Encoding, or several of one of them. It uses no sockets. The input may be hostile.
class HttpParser {
 public:
  // `head_bytes_max` limits the request line and the headers together.
  HttpParser(size_t head_bytes_max, uint64_t body_bytes_max);
  ~HttpParser();

  // Reads the head at the start of `bytes`, which are all bytes of the request that have arrived. Call it again with
  // more bytes as long as it returns 0 and error_status() is 0. Returns the size of the head. The result does not
  // depend on how the bytes arrive, and the total time is proportional to the size of the head.
  size_t ReadHead(std::string_view bytes);

  // The status (400, 413, 414, 417, 431 or 505) and the message for the client. 0: no error.
  int error_status() const { return error_status_; }
  const std::string& error() const { return error_; }

  // The following are valid after ReadHead has returned the size of a head.
  WebRequest& request() { return request_; }
  bool keep_alive() const { return keep_alive_; }
  bool has_body() const { return has_body_; }
  bool expects_continue() const { return expects_continue_; }

  // Decodes the body at the start of `bytes`, which are the bytes after the head and after those that earlier calls
  // have used. Appends decoded bytes to `piece`. Returns the number of bytes that were used.
  size_t ReadBody(std::string_view bytes, std::string* piece);
  bool body_is_complete() const;

 private:
  struct Impl;
  size_t Fail(int status, std::string message);
  bool CheckLines(std::string_view bytes);
  bool TakeTarget(std::string_view target);
  bool CheckFraming();

  const size_t head_bytes_max_;
  const uint64_t body_bytes_max_;
  std::unique_ptr<Impl> impl_;
  WebRequest request_;
  std::string error_;
  int error_status_ = 0;
  size_t scanned_ = 0;     // bytes that CheckLines has seen
  size_t line_begin_ = 0;  // of the line at `scanned_`
  size_t lines_ = 0;       // complete lines, without empty lines before the request
  size_t head_begin_ = 0;  // after the empty lines before the request
  size_t head_size_ = 0;   // once the empty line was found
  bool keep_alive_ = false;
  bool has_body_ = false;
  bool expects_continue_ = false;
};

}  // namespace tributary
