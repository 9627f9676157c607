#include "k8s-collector/watch/api_access.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/status.h"

namespace tributary {
namespace {

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr size_t kUrlBytesMax = 2048;

std::string ValueOf(const std::map<std::string, std::string>& environment, const char* name) {
  auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace

absl::StatusOr<ApiAccess> InClusterAccess(const std::map<std::string, std::string>& environment,
                                          const std::string& root) {
  std::string host = ValueOf(environment, "KUBERNETES_SERVICE_HOST");
  std::string port = ValueOf(environment, "KUBERNETES_SERVICE_PORT");
  if (host.empty())
    return Error(absl::StatusCode::kNotFound, "KUBERNETES_SERVICE_HOST is not set: this program does not run in a pod");
  if (port.empty()) port = "443";
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  ApiAccess access;
  ASSIGN_OR_RETURN(access.server, CheckServerUrl(fmt::format("https://{}:{}", host, port)));
  access.token_file = fmt::format("{}{}/token", root, kServiceAccount);
  access.ca_file = fmt::format("{}{}/ca.crt", root, kServiceAccount);
  for (const std::string& file : {access.token_file, access.ca_file}) {
    if (::access(file.c_str(), R_OK) != 0) {
      return Error(
          absl::StatusCode::kFailedPrecondition,
          fmt::format("{} cannot be read: run the pod with a service account, and mount the service account's token",
                      file));
    }
  }
  return access;
}

absl::StatusOr<std::string> CheckServerUrl(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  bool plain = url.size() <= kUrlBytesMax;
  for (const char c : url) plain = plain && c > ' ' && c < 0x7f && c != '?' && c != '#' && c != '@';
  const size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (!plain || scheme == 0 || url.size() == scheme) {
    return Error(absl::StatusCode::kInvalidArgument, "must be a URL like https://HOST:PORT");
  }
  return std::string(url);
}

}  // namespace tributary
