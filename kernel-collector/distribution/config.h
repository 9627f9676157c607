#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "base/yaml_document.h"

namespace tributary {

// A configuration file of the OpenTelemetry eBPF profiler's Collector distribution, in terms of our options.
struct DistributionConfig {
  std::vector<Options::ForeignValue> values;
  // One sentence for each component and key in use whose feature does not exist here, with its line. At most 64.
  std::vector<std::string> warnings;
};

// Returns true if the file has a section of the Collector's format. No option of kernel-collector has such a name.
bool IsDistributionConfig(const YamlNode& root);

// Reads `receivers`, `processors`, `exporters`, `extensions` and `service`. As in the Collector, a component has an
// effect only if `service` uses it. All components must be of the distribution, and all their keys must have the right
// type. table.h says what each of them does. Returns InvalidArgument for all errors, with line and column.
absl::StatusOr<DistributionConfig> ReadDistributionConfig(const YamlNode& root);

}  // namespace tributary
