#include "otlp/post_answer.h"

#include <algorithm>

#include "base/ascii_case.h"
#include "base/trim.h"

namespace tributary::otlp {

bool PostAnswer::AddHeaderLine(std::string_view line) {
  header_bytes += line.size();
  if (header_bytes > kAnswerHeaderBytesMax) return false;
  if (line.starts_with("HTTP/")) {  // the answer itself, after an interim one
    headers.clear();
    trailers.clear();
    has_head = false;
    return true;
  }
  if (line == "\r\n" || line == "\n") has_head = true;
  const size_t colon = line.find(':');
  if (colon == line.npos) return true;
  (has_head ? trailers : headers)
      .emplace_back(LowerCase(line.substr(0, colon)), Trim(line.substr(colon + 1), kAsciiBlanks));
  return true;
}

bool PostAnswer::AddBody(std::string_view bytes) {
  const size_t room = kAnswerBytesMax - body.size();
  body.append(bytes.substr(0, room));
  is_cut = bytes.size() > room;
  return !is_cut;
}

std::string_view FieldOf(const PostAnswer::Fields& fields, std::string_view name) {
  const auto field = std::find_if(fields.rbegin(), fields.rend(), [&](const auto& f) { return f.first == name; });
  return field == fields.rend() ? std::string_view() : field->second;
}

}  // namespace tributary::otlp
