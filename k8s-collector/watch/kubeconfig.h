#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {

// Reads a file of kubectl (client.authentication.k8s.io and kubeconfig v1): the named context, or the current one if
// `context` is "". InvalidArgument if the file is not a kubeconfig, or if it needs features that are not supported
// here: programs that get credentials, passwords, proxies.
absl::StatusOr<ApiAccess> ReadKubeconfig(const std::string& path, const std::string& context);

}  // namespace tributary
