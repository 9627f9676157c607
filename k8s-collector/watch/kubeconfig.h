#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {

// A file as kubectl has (client.authentication.k8s.io and kubeconfig v1): the named context, or the current one with
// "". InvalidArgument: it is none, or it asks for what is not done here: programs that get credentials, passwords,
// proxies.
absl::StatusOr<ApiAccess> ReadKubeconfig(const std::string& path, const std::string& context);

}  // namespace tributary
