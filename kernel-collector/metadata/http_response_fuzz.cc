#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "kernel-collector/metadata/http_response.h"

// The first byte is the size of the pieces in which the rest arrives; 0: one piece. Neither the pieces nor the bytes
// may break the reader's guarantees.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBodyMax = 1000;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t piece = data[0] == 0 ? text.size() + 1 : data[0];
  tributary::HttpResponseReader reader(kBodyMax);
  for (size_t i = 0; i < text.size() && !reader.done(); i += piece) {
    if (!reader.Feed(text.substr(i, piece)).ok()) return 0;
  }
  if (!reader.done() && !reader.End().ok()) return 0;
  const tributary::HttpResponse response = std::move(reader).Take();
  TRIBUTARY_CHECK(response.body.size() <= kBodyMax);
  TRIBUTARY_CHECK(response.status >= 200 && response.status <= 999);
  return 0;
}
