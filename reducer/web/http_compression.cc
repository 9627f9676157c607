#include "reducer/web/http_compression.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/ascii_case.h"

namespace tributary {
namespace {

constexpr size_t kCompressBytesMin = 1u << 10;
constexpr size_t kStepBytes = 1u << 20;  // between two looks at `cancelled`
constexpr unsigned kOutputBytes = 256u << 10;
constexpr int kWindowBits = 15 + 16;  // zlib writes gzip's header and trailer

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns false for "q=0", "q=0.0"… and true for any other parameter.
bool AllowsByWeight(std::string_view parameter) {
  parameter = Trim(parameter);
  if (parameter.size() < 3 || (parameter[0] | 0x20) != 'q' || parameter[1] != '=') return true;
  return parameter.substr(2).find_first_not_of("0.") != std::string_view::npos;
}

bool IsText(std::string_view content_type) {
  return content_type.starts_with("text/") || content_type.starts_with("application/json") ||
         content_type.starts_with("image/svg");
}

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  bool any = false;
  while (!accept_encoding.empty()) {
    const size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(comma == std::string_view::npos ? accept_encoding.size() : comma + 1);
    const size_t semicolon = item.find(';');
    const std::string_view coding = Trim(item.substr(0, semicolon));
    const bool allows = semicolon == std::string_view::npos || AllowsByWeight(item.substr(semicolon + 1));
    if (EqualsIgnoringCase(coding, "gzip") || EqualsIgnoringCase(coding, "x-gzip")) return allows;
    if (coding == "*") any = allows;
  }
  return any;
}

std::string Gzip(std::string_view bytes, int level, const std::atomic<bool>* cancelled) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kWindowBits, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  const std::unique_ptr<z_stream, void (*)(z_stream*)> owner(&stream, [](z_stream* s) { deflateEnd(s); });
  std::string out;
  int result = Z_OK;
  while (result == Z_OK) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) return "";
    if (stream.avail_in == 0) {
      const std::string_view step = bytes.substr(0, kStepBytes);
      bytes.remove_prefix(step.size());
      // zlib does not change its input.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(step.data()));
      stream.avail_in = static_cast<uInt>(step.size());
    }
    const size_t had = out.size();
    out.resize(had + kOutputBytes);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = kOutputBytes;
    result = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  return result == Z_STREAM_END ? out : "";
}

void CompressAnswer(const WebRequest& request, WebResponse& response) {
  if (!IsText(response.content_type)) return;
  if (HasField(response.headers, "Vary")) return;  // the handler has chosen
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (response.body.size() < kCompressBytesMin || !AcceptsGzip(request.Header("accept-encoding"))) return;
  std::string compressed = Gzip(response.body, kGzipLevelFast, request.cancelled);
  if (compressed.empty() || compressed.size() >= response.body.size()) return;
  response.body = std::move(compressed);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace tributary
