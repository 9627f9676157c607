#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/distribution/config.h"
#include "kernel-collector/distribution/destination.h"
#include "kernel-collector/distribution/flag_file.h"

namespace {

void CheckWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    TRIBUTARY_CHECK(warning.starts_with("line ") && tributary::EscapeForDisplay(warning) == warning);
  }
}

}  // namespace

// Every error has a line and a column. Every warning has a line, and can be logged as it is. That also holds for the
// profiler's own files, and for the destination.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  if (const auto flags = ReadFlagFile({reinterpret_cast<const char*>(data), size}); flags.ok()) {
    if (*flags) CheckWarnings((*flags)->warnings);
  } else {
    TRIBUTARY_CHECK(flags.status().message().substr(0, 5) == "line ");
  }
  const auto root = ParseYaml({reinterpret_cast<const char*>(data), size});
  if (!root.ok()) return 0;
  const auto config = ReadDistributionConfig(*root, {{"A", "a: ${B}"}, {"B", "[1, ${C}]"}, {"C", "${A}"}});
  if (!config.ok()) {
    TRIBUTARY_CHECK(config.status().code() == absl::StatusCode::kInvalidArgument);
    TRIBUTARY_CHECK(config.status().message().substr(0, 5) == "line ");
    return 0;
  }
#ifdef TRIBUTARY_PLANT_CRASH
  if (config->values.empty() && config->warnings.size() == 1) abort();
#endif
  TRIBUTARY_CHECK(IsDistributionConfig(*root));
  CheckWarnings(config->warnings);
  const auto destination = ChooseDestination({.exporters = config->exporters});
  if (destination.ok()) {
    CheckWarnings(destination->warnings);
  } else {
    TRIBUTARY_CHECK(destination.status().message().substr(0, 5) == "line ");
  }
  for (const Options::ForeignValue& value : config->values) TRIBUTARY_CHECK(value.source.starts_with("line "));
  return 0;
}
