#include "k8s-collector/watch/kubeconfig.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "k8s-collector/watch/kubeconfig_exec.h"
#include "k8s-collector/watch/kubeconfig_files.h"
#include "k8s-collector/watch/proxy_url.h"

namespace tributary {
namespace {

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

// Decodes standard base64 with padding, the form of the "-data" keys.
absl::StatusOr<std::string> FromBase64(std::string text, std::string_view key) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
  std::string out(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return Invalid(fmt::format("{}: not base64", key));
  out.resize(static_cast<size_t>(size));
  for (size_t i = 0; i < 2 && text.ends_with('='); ++i) {
    text.pop_back();
    out.pop_back();
  }
  return out;
}

bool IsServerName(std::string_view name) {
  return name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
                  c == '_' || c == ':';
         });
}

// Converts an entry of one kubeconfig file. Paths are relative to the entry's directory.
class EntryReader {
 public:
  explicit EntryReader(const KubeconfigFiles::Entry& entry) : body_(entry.body), directory_(entry.directory) {}

  absl::Status TakeCluster(ApiAccess& access) const {
    absl::StatusOr<std::string> server = CheckServerUrl(YamlText(body_, "server"));
    if (!server.ok()) return WithContext(server.status(), "the cluster's server");
    access.server = *std::move(server);
    access.insecure = YamlText(body_, "insecure-skip-tls-verify") == "true";
    access.tls_server_name = YamlText(body_, "tls-server-name");
    if (!IsServerName(access.tls_server_name)) {
      return Invalid("the cluster's tls-server-name must be a host name or an IP address");
    }
    access.proxy_url = YamlText(body_, "proxy-url");
    if (!access.proxy_url.empty()) {
      RETURN_IF_ERROR(WithContext(CheckProxyUrl(access.proxy_url), "the cluster's proxy-url"));
    }
    return TakeFile("certificate-authority", access.ca_file, access.ca_pem);
  }

  absl::Status TakeUser(const YAML::Node& cluster, ApiAccess& access) const {
    if (Has("auth-provider")) {
      return Invalid(
          fmt::format("the kubeconfig's user has the auth-provider \"{}\", which is not supported: use an exec plug-in "
                      "instead, such as "
                      "gke-gcloud-auth-plugin, kubelogin or kubectl oidc-login",
                      EscapeForDisplay(YamlText(body_["auth-provider"], "name"))));
    }
    for (const char* key : {"username", "password", "as", "as-uid"}) {
      if (!YamlText(body_, key).empty()) return Invalid(fmt::format("the user's {} is not supported", key));
    }
    access.token = YamlText(body_, "token");
    access.token_file = Absolute(YamlText(body_, "tokenFile"));
    RETURN_IF_ERROR(TakeFile("client-certificate", access.cert_file, access.cert_pem));
    RETURN_IF_ERROR(TakeFile("client-key", access.key_file, access.key_pem));
    const bool has_cert = !access.cert_file.empty() || !access.cert_pem.empty();
    const bool has_key = !access.key_file.empty() || !access.key_pem.empty();
    if (has_cert != has_key) return Invalid("client-certificate and client-key belong together: one is missing");
    // As in kubectl, a token takes precedence over a plug-in.
    if (!access.token.empty() || !access.token_file.empty() || !Has("exec")) return absl::OkStatus();
    ASSIGN_OR_RETURN(access.exec, ReadExecConfig(body_["exec"], cluster));
    if (access.exec->command.find('/') != std::string::npos) access.exec->command = Absolute(access.exec->command);
    return absl::OkStatus();
  }

 private:
  bool Has(const char* key) const { return body_.IsMap() && body_[key] && !body_[key].IsNull(); }

  // "KEY-data" takes precedence over "KEY", as in kubectl.
  absl::Status TakeFile(const std::string& key, std::string& file, std::string& pem) const {
    const std::string data_key = key + "-data";
    if (const std::string data = YamlText(body_, data_key.c_str()); !data.empty()) {
      ASSIGN_OR_RETURN(pem, FromBase64(data, data_key));
    } else {
      file = Absolute(YamlText(body_, key.c_str()));
    }
    return absl::OkStatus();
  }

  std::string Absolute(const std::string& path) const {
    return path.empty() || path.starts_with('/') ? path : (directory_ / path).string();
  }

  const YAML::Node body_;
  const std::filesystem::path directory_;
};

absl::StatusOr<ApiAccess> ReadContext(const KubeconfigFiles& files, std::string context) {
  if (context.empty()) context = files.CurrentContext();
  if (context.empty()) return Invalid("the kubeconfig has no current-context: choose a context with --context");
  ASSIGN_OR_RETURN(const KubeconfigFiles::Entry chosen, files.Find("contexts", "context", context));
  ASSIGN_OR_RETURN(const KubeconfigFiles::Entry cluster,
                   files.Find("clusters", "cluster", YamlText(chosen.body, "cluster")));
  ApiAccess access;
  RETURN_IF_ERROR(EntryReader(cluster).TakeCluster(access));
  const std::string user_name = YamlText(chosen.body, "user");
  if (user_name.empty()) return access;
  ASSIGN_OR_RETURN(const KubeconfigFiles::Entry user, files.Find("users", "user", user_name));
  RETURN_IF_ERROR(EntryReader(user).TakeUser(cluster.body, access));
  return access;
}

}  // namespace

absl::StatusOr<ApiAccess> ReadKubeconfig(const std::string& paths, const std::string& context) {
  ASSIGN_OR_RETURN(const KubeconfigFiles files, KubeconfigFiles::Read(paths));
  try {
    absl::StatusOr<ApiAccess> access = ReadContext(files, context);
    return access.ok() ? access : WithContext(access.status(), paths);
  } catch (const YAML::Exception& error) {
    return Invalid(fmt::format("{}: {}", paths, error.what()));
  }
}

}  // namespace tributary
