#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kernel-collector/processes/process_context.h"

// Fuzzes the parsers of a published process context and of a memory map with process-chosen names. Both get the same
// bytes.

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
      // Only a message with a complete attribute reaches this check.
      Require(value != "5");
#endif
    }
  }
  if (auto address = tributary::FindProcessContext(bytes)) Require(bytes.find("OTEL_CTX") != std::string_view::npos);
  return 0;
}
