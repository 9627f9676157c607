#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/http_request_head.h"
#include "base/status.h"

// The result must not depend on how the bytes arrive. No prefix of a complete head is complete or invalid. No prefix of
// an invalid head is complete.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const HttpHeadResult whole = ParseHttpRequestHead(bytes);
  TRIBUTARY_CHECK(whole.size <= size && whole.size <= kHttpHeadBytesMax);
  TRIBUTARY_CHECK(whole.size == 0 || whole.error == 0);
  TRIBUTARY_CHECK(whole.size == 0 || (whole.head.path.starts_with('/') && !whole.head.method.empty()));
  TRIBUTARY_CHECK(whole.size > 0 || whole.error > 0 || size < kHttpHeadBytesMax);
#ifdef TRIBUTARY_PLANT_CRASH
  if (whole.head.has_body && whole.head.keep_alive && whole.head.path == "/healthz") abort();
#endif
  if (whole.size > 0) {
    TRIBUTARY_CHECK(ParseHttpRequestHead(bytes.substr(0, whole.size)).size == whole.size);
    TRIBUTARY_CHECK(ParseHttpRequestHead(bytes.substr(0, whole.size - 1)).size == 0);
    TRIBUTARY_CHECK(ParseHttpRequestHead(bytes.substr(0, whole.size - 1)).error == 0);
  }
  if (whole.error > 0) {
    for (std::string_view part = bytes; !part.empty(); part.remove_suffix((part.size() + 7) / 8)) {
      TRIBUTARY_CHECK(ParseHttpRequestHead(part).size == 0);
    }
  }
  return 0;
}
