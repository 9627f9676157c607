#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {

// Reads an API server's address and credentials from kubectl's configuration files (kubeconfig v1). `paths` names one
// file or several, separated by colons, which are merged (kubeconfig_files.h). Uses the context with the name
// `context`, or the current context if `context` is "". Returns InvalidArgument if a file is not a kubeconfig, or if it
// needs a feature that is not supported here, such as passwords. Returns the errors of ErrnoStatus (status.h) if no
// file can be read.
absl::StatusOr<ApiAccess> ReadKubeconfig(const std::string& paths, const std::string& context);

}  // namespace tributary
