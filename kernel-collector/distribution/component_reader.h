#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/yaml_document.h"
#include "kernel-collector/distribution/config.h"
#include "kernel-collector/distribution/table.h"

namespace tributary {

// Reads one component, and adds its values, warnings and settings to `out`. `path` is its name in messages, such as
// "receivers.profiling"; "" if the names of its keys are enough. Returns the errors of ReadDistributionConfig.
absl::Status ReadComponent(const Component& component, const YamlNode& node, std::string path, DistributionConfig& out);

}  // namespace tributary
