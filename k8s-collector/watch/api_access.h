#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// Where an API server is, and how it and we know each other. Of each pair the file wins; files are read again for every
// request, so that new tokens and certificates are used once they are there.
struct ApiAccess {
  std::string server;           // "https://10.0.0.1:6443", no "/" at its end
  std::string ca_file, ca_pem;  // both "": the system's authorities
  std::string cert_file, cert_pem;
  std::string key_file, key_pem;
  std::string token_file, token;
  bool insecure = false;  // the server's certificate is not looked at
};

// What every pod has: the service account's files below `root` + /var/run/secrets/kubernetes.io/serviceaccount, the
// address in the environment. NotFound: this is no pod. FailedPrecondition: one without a service account's token.
absl::StatusOr<ApiAccess> InClusterAccess(const std::map<std::string, std::string>& environment,
                                          const std::string& root);

// "http://host:port" or "https://…", without the "/"s at its end. InvalidArgument: it is no such URL.
absl::StatusOr<std::string> CheckServerUrl(std::string_view url);

}  // namespace tributary
