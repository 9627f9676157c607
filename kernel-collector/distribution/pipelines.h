#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/yaml_document.h"
#include "kernel-collector/distribution/table.h"

namespace tributary {

// Returns the error "line L, column C: MESSAGE" for the key or the value of a node.
absl::Status WrongKey(const YamlNode& node, std::string_view message);
absl::Status WrongValue(const YamlNode& node, std::string_view message);

// The components that `service` uses: their ids, such as "otlp/pyroscope".
struct UsedComponents {
  std::map<Section, std::set<std::string>> ids;
  std::vector<std::string> warnings;
};

// Reads the section `service` of a Collector's configuration, whose root is `root`. Returns InvalidArgument, with line
// and column, for an unknown key, a component that is used but not defined, and unless profiles are received from
// exactly one receiver `profiling`.
absl::StatusOr<UsedComponents> ReadService(const YamlNode& root);

}  // namespace tributary
