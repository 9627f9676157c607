#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/options.h"
#include "base/yaml_document.h"
#include "kernel-collector/distribution/exporter.h"

namespace tributary {

// The key `interpreters`. The Collector switches on all languages that the file does not switch off.
struct Interpreters {
  std::string tracers;  // the value of --tracers: all languages that are on
  std::string named;    // those that the file names. Only these give warnings, because a default must not give any
};

// A configuration file of the OpenTelemetry eBPF profiler's Collector distribution, in terms of our options.
struct DistributionConfig {
  std::vector<Options::ForeignValue> values;
  std::optional<Interpreters> interpreters;
  std::vector<Exporter> exporters;  // in use
  // One sentence for each component and key in use whose feature does not exist here, with its line. At most 64.
  std::vector<std::string> warnings;
};

// Returns true if the file has a section of the Collector's format. No option of kernel-collector has such a name.
bool IsDistributionConfig(const YamlNode& root);

// Reads `receivers`, `processors`, `exporters`, `extensions` and `service`. As in the Collector, a component has an
// effect only if `service` uses it. All components must be of the distribution, and all their keys must have the right
// type. table.h says what each of them does. Expands the variables in all values (variables.h). Returns InvalidArgument
// for all errors, with line and column.
absl::StatusOr<DistributionConfig> ReadDistributionConfig(YamlNode root, const Options::Environment& environment);

// Keeps at most 64 warnings, the first ones. The last of them says how many are missing.
void LimitWarnings(std::vector<std::string>& warnings);

}  // namespace tributary
