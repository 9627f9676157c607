#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {

// Reads an API server's address and credentials from kubectl's configuration file (kubeconfig v1). Uses the context
// with the name `context`, or the file's current context if `context` is "". Returns InvalidArgument if the file is not
// a kubeconfig, or if it needs a feature that is not supported here, such as programs that get credentials, passwords,
// or proxies.
absl::StatusOr<ApiAccess> ReadKubeconfig(const std::string& path, const std::string& context);

}  // namespace tributary
