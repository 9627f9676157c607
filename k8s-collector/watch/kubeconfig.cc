#include "k8s-collector/watch/kubeconfig.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/status.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

constexpr size_t kFileBytesMax = 1u << 20;

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

std::string Scalar(const YAML::Node& from, const char* key) {
  if (!from.IsMap() || !from[key] || !from[key].IsScalar()) return "";
  return from[key].Scalar();
}

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

// Returns the mapping below `key` in the entry with that name of the list `list`.
absl::StatusOr<YAML::Node> Named(const YAML::Node& root, const char* list, const char* key, const std::string& name) {
  if (root[list] && root[list].IsSequence()) {
    for (const YAML::Node& entry : root[list]) {
      if (Scalar(entry, "name") == name && entry[key] && entry[key].IsMap()) return entry[key];
    }
  }
  return Invalid(fmt::format("the kubeconfig has no {} named \"{}\"", key, name));
}

class KubeconfigReader {
 public:
  explicit KubeconfigReader(const std::string& path) : directory_(std::filesystem::path(path).parent_path()) {}

  absl::StatusOr<ApiAccess> Read(const std::string& text, std::string context) const {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return Invalid("the file is not a kubeconfig");
    if (context.empty()) context = Scalar(root, "current-context");
    if (context.empty()) return Invalid("the kubeconfig has no current-context: choose a context with --context");
    ASSIGN_OR_RETURN(const YAML::Node chosen, Named(root, "contexts", "context", context));
    ASSIGN_OR_RETURN(const YAML::Node cluster, Named(root, "clusters", "cluster", Scalar(chosen, "cluster")));
    ApiAccess access;
    RETURN_IF_ERROR(TakeCluster(cluster, access));
    const std::string user_name = Scalar(chosen, "user");
    if (user_name.empty()) return access;
    ASSIGN_OR_RETURN(const YAML::Node user, Named(root, "users", "user", user_name));
    RETURN_IF_ERROR(TakeUser(user, access));
    return access;
  }

 private:
  absl::Status TakeCluster(const YAML::Node& cluster, ApiAccess& access) const {
    for (const char* key : {"proxy-url", "tls-server-name"}) {
      if (!Scalar(cluster, key).empty()) return Invalid(fmt::format("the cluster's {} is not supported", key));
    }
    absl::StatusOr<std::string> server = CheckServerUrl(Scalar(cluster, "server"));
    if (!server.ok()) return WithContext(server.status(), "the cluster's server");
    access.server = *std::move(server);
    access.insecure = Scalar(cluster, "insecure-skip-tls-verify") == "true";
    return TakeFile(cluster, "certificate-authority", access.ca_file, access.ca_pem);
  }

  absl::Status TakeUser(const YAML::Node& user, ApiAccess& access) const {
    if (user["exec"] || user["auth-provider"]) {
      return Invalid(
          "the kubeconfig's user gets credentials from a program (exec or auth-provider), and k8s-collector runs no "
          "programs: use a token, a tokenFile or a client certificate, for example of a service account "
          "(docs/k8s-collector.md)");
    }
    for (const char* key : {"username", "password", "as", "as-uid"}) {
      if (!Scalar(user, key).empty()) return Invalid(fmt::format("the user's {} is not supported", key));
    }
    access.token = Scalar(user, "token");
    access.token_file = Absolute(Scalar(user, "tokenFile"));
    RETURN_IF_ERROR(TakeFile(user, "client-certificate", access.cert_file, access.cert_pem));
    RETURN_IF_ERROR(TakeFile(user, "client-key", access.key_file, access.key_pem));
    const bool has_cert = !access.cert_file.empty() || !access.cert_pem.empty();
    const bool has_key = !access.key_file.empty() || !access.key_pem.empty();
    if (has_cert != has_key) return Invalid("client-certificate and client-key belong together: one is missing");
    return absl::OkStatus();
  }

  // "KEY-data" takes precedence over "KEY", as in kubectl.
  absl::Status TakeFile(const YAML::Node& from, const std::string& key, std::string& file, std::string& pem) const {
    const std::string data_key = key + "-data";
    if (const std::string data = Scalar(from, data_key.c_str()); !data.empty()) {
      ASSIGN_OR_RETURN(pem, FromBase64(data, data_key));
    } else {
      file = Absolute(Scalar(from, key.c_str()));
    }
    return absl::OkStatus();
  }

  std::string Absolute(const std::string& path) const {
    return path.empty() || path.starts_with('/') ? path : (directory_ / path).string();
  }

  const std::filesystem::path directory_;
};

}  // namespace

absl::StatusOr<ApiAccess> ReadKubeconfig(const std::string& path, const std::string& context) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("open", path, errno);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file.get(), kFileBytesMax, path));
  try {
    absl::StatusOr<ApiAccess> access = KubeconfigReader(path).Read(text, context);
    return access.ok() ? access : WithContext(access.status(), path);
  } catch (const YAML::Exception& error) {
    return Invalid(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace tributary
