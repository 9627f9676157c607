#pragma once

#include <yaml-cpp/yaml.h>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {

// Converts the `exec` of a kubeconfig's user. `cluster` is the kubeconfig's cluster, whose extension
// client.authentication.k8s.io/exec is for the program. A relative path of the command stays relative. Returns
// InvalidArgument if the program cannot be used, for example because it needs a terminal. Throws YAML::Exception.
absl::StatusOr<ExecConfig> ReadExecConfig(const YAML::Node& exec, const YAML::Node& cluster);

}  // namespace tributary
