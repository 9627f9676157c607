#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reducer/web/http_parser.h"

namespace tributary {
namespace {

constexpr size_t kHeadBytesMax = 12u << 10;
constexpr uint64_t kBodyBytesMax = 1u << 20;

struct Result {
  size_t head_size = 0;
  int status = 0;
  bool complete = false;
  std::string body;
  size_t body_size = 0;  // of the encoded body
  friend bool operator==(const Result&, const Result&) = default;
};

// Parses a request whose bytes arrive `step` at a time.
Result Parse(std::string_view bytes, size_t step) {
  HttpParser parser(kHeadBytesMax, kBodyBytesMax);
  Result result;
  for (size_t end = std::min(step, bytes.size()); result.head_size == 0; end = std::min(end + step, bytes.size())) {
    result.head_size = parser.ReadHead(bytes.substr(0, end));
    if (parser.error_status() != 0 || end == bytes.size()) break;
  }
  if (result.head_size > 0) {
    const WebRequest& request = parser.request();
    TRIBUTARY_CHECK(result.head_size <= kHeadBytesMax && request.path.starts_with('/') && !request.method.empty());
#ifdef TRIBUTARY_PLANT_CRASH
    if (parser.has_body() && parser.expects_continue() && request.path == "/api/v1/symbols") abort();
#endif
    size_t arrived = result.head_size;
    while (parser.error_status() == 0 && !parser.body_is_complete() && parser.has_body() && arrived < bytes.size()) {
      arrived = std::min(arrived + step, bytes.size());
      const size_t begin = result.head_size + result.body_size;
      result.body_size += parser.ReadBody(bytes.substr(begin, arrived - begin), &result.body);
    }
    result.complete = parser.body_is_complete();
    // How much of an incomplete chunk counts as used depends on the pieces.
    if (!result.complete) result.body_size = 0;
    TRIBUTARY_CHECK(result.body.size() <= kBodyBytesMax &&
                    (!result.complete || result.body.size() <= result.body_size));
  }
  result.status = parser.error_status();
  return result;
}

}  // namespace
}  // namespace tributary

// The result must not depend on how the bytes arrive.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  if (size > 4u << 10) return 0;  // below the limits, whose statuses depend on the pieces
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result whole = Parse(bytes, std::max<size_t>(size, 1));
  for (const size_t step : {1, 2, 7}) {
    const Result pieces = Parse(bytes, step);
    TRIBUTARY_CHECK(pieces.status == whole.status && pieces.head_size == whole.head_size);
    if (whole.status == 0) TRIBUTARY_CHECK(pieces == whole);
  }
  return 0;
}
