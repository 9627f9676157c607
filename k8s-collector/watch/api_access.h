#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// A program that prints credentials: the `exec` of a kubeconfig's user. See exec_plugin.h.
struct ExecConfig {
  std::string api_version;  // of its answer: client.authentication.k8s.io/v1 or …/v1beta1
  std::string command;      // a path with a "/", or a name that is looked up in PATH
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to the environment of this process
  std::string install_hint;                                      // for users who do not have the program
  bool wants_cluster = false;                                    // it gets the server's address and authority
  std::string cluster_config;  // JSON for the program, from the cluster's extensions. "": none
};

// The address of an API server, and the credentials for connecting to it. If both a file and a text (`ca_file` and
// `ca_pem`, for example) are set, the file is used. Files are read again for every request, so a new token or
// certificate takes effect with the next request.
struct ApiAccess {
  std::string server;           // "https://10.0.0.1:6443", no "/" at the end
  std::string ca_file, ca_pem;  // both "": the system's authorities
  std::string cert_file, cert_pem;
  std::string key_file, key_pem;
  std::string token_file, token;
  bool insecure = false;        // the server's certificate is not checked
  std::string tls_server_name;  // the name in the server's certificate. "": the host of `server`
  std::string proxy_url;        // see proxy_url.h. "": the proxy of the environment (https_proxy), if there is one
  std::optional<ExecConfig> exec;
};

// Returns the access that Kubernetes gives to every pod. The address is in `environment`. The files of the service
// account are in `root` + /var/run/secrets/kubernetes.io/serviceaccount. Returns NotFound if this process does not run
// in a pod, and FailedPrecondition if the service account's token or certificate authority cannot be read.
absl::StatusOr<ApiAccess> InClusterAccess(const std::map<std::string, std::string>& environment,
                                          const std::string& root);

// Returns `url` without any "/" at its end. Returns InvalidArgument if `url` is not an http or https URL, or if it has
// a query, a fragment or a user name.
absl::StatusOr<std::string> CheckServerUrl(std::string_view url);

}  // namespace tributary
