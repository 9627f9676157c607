#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// The address of an API server, and the credentials of both sides. Of each pair the file takes precedence. Files are
// read again for every request, so new tokens and certificates take effect as soon as they exist.
struct ApiAccess {
  std::string server;           // "https://10.0.0.1:6443", no "/" at the end
  std::string ca_file, ca_pem;  // both "": the system's authorities
  std::string cert_file, cert_pem;
  std::string key_file, key_pem;
  std::string token_file, token;
  bool insecure = false;  // the server's certificate is not checked
};

// Returns the access that every pod has: the service account's files below `root` +
// /var/run/secrets/kubernetes.io/serviceaccount, and the address in the environment. NotFound if this is not a pod.
// FailedPrecondition if the service account's token or certificate authority cannot be read.
absl::StatusOr<ApiAccess> InClusterAccess(const std::map<std::string, std::string>& environment,
                                          const std::string& root);

// Returns the URL "http://host:port" or "https://…", without any "/" at its end. InvalidArgument if it is not such a
// URL.
absl::StatusOr<std::string> CheckServerUrl(std::string_view url);

}  // namespace tributary
