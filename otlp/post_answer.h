#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tributary::otlp {

// Of an answer, only this much is read.
inline constexpr size_t kAnswerBytesMax = 64u << 10;
inline constexpr size_t kAnswerHeaderBytesMax = 64u << 10;  // of all headers and trailers together

// A receiver's answer to a POST. All of it is hostile input.
struct PostAnswer {
  using Fields = std::vector<std::pair<std::string, std::string>>;  // names in lower case, as HTTP/2 requires them

  long status = 0;          // of HTTP
  Fields headers;           // of the answer itself, not of an interim one such as 100 Continue
  Fields trailers;          // the header fields that come after the body
  std::string body;         // at most kAnswerBytesMax
  size_t header_bytes = 0;  // of all header lines that arrived
  bool has_head = false;    // all of `headers` have arrived
  bool is_cut = false;      // the body is longer, but only its start was read

  // Adds a line of the head, or of the trailers: the status line, a header field, or the empty line at the end. Returns
  // false if the lines are longer than kAnswerHeaderBytesMax.
  bool AddHeaderLine(std::string_view line);
  // Adds bytes of the body. Returns false if the body is longer than kAnswerBytesMax.
  bool AddBody(std::string_view bytes);
};

// Returns the value of the last field with this name, in lower case, or "".
std::string_view FieldOf(const PostAnswer::Fields& fields, std::string_view name);

}  // namespace tributary::otlp
