#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/distribution/config.h"

// Every error has a line and a column. Every warning has a line, and can be logged as it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  const auto root = ParseYaml({reinterpret_cast<const char*>(data), size});
  if (!root.ok()) return 0;
  const auto config = ReadDistributionConfig(*root);
  if (!config.ok()) {
    TRIBUTARY_CHECK(config.status().code() == absl::StatusCode::kInvalidArgument);
    TRIBUTARY_CHECK(config.status().message().substr(0, 5) == "line ");
    return 0;
  }
#ifdef TRIBUTARY_PLANT_CRASH
  if (config->values.empty() && config->warnings.size() == 1) abort();
#endif
  TRIBUTARY_CHECK(IsDistributionConfig(*root));
  for (const std::string& warning : config->warnings) {
    TRIBUTARY_CHECK(warning.starts_with("line ") && EscapeForDisplay(warning) == warning);
  }
  for (const Options::ForeignValue& value : config->values) TRIBUTARY_CHECK(value.source.starts_with("line "));
  return 0;
}
