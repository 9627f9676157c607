#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kernel-collector/processes/process_context.h"

// What a process publishes of itself, and a memory map that it chose names in: the same bytes as both.

namespace {

void Require(bool holds) {
  if (!holds) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto context = tributary::DecodeProcessContext(bytes); context.ok()) {
    Require(context->attributes.size() <= tributary::kProcessContextAttributesMax);
    for (const auto& [key, value] : context->attributes) {
      Require(!key.empty() && key.size() <= size);
#ifdef TRIBUTARY_PLANT_CRASH
      // Within reach only of a message that holds a whole attribute.
      Require(value != "5");
#endif
    }
  }
  if (auto address = tributary::FindProcessContext(bytes)) Require(bytes.find("OTEL_CTX") != std::string_view::npos);
  return 0;
}
