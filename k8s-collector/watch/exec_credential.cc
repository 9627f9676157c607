#include "k8s-collector/watch/exec_credential.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <simdjson.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>

#include "absl/strings/escaping.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/trim.h"
#include "base/utf8.h"
#include "base/yaml_document.h"
#include "k8s-collector/watch/secret_text.h"

namespace tributary {
namespace {

constexpr YamlLimits kAnswerLimits = {.bytes_max = 1u << 20, .depth_max = 32, .nodes_max = 1'000};
constexpr size_t kShownBytes = 100;

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

absl::StatusOr<std::string> EncodeCluster(const ApiAccess& access) {
  ASSIGN_OR_RETURN(const std::string authority, SecretText(access.ca_file, access.ca_pem));
  JsonWriter json;
  json.BeginObject();
  json.Field("server", access.server);
  if (!access.tls_server_name.empty()) json.Field("tls-server-name", access.tls_server_name);
  if (access.insecure) json.Field("insecure-skip-tls-verify", true);
  if (!authority.empty()) json.Field("certificate-authority-data", absl::Base64Escape(authority));
  if (!access.proxy_url.empty()) json.Field("proxy-url", access.proxy_url);
  json.EndObject();
  std::string out = std::move(json).Take();
  const std::string& config = access.exec->cluster_config;
  if (config.empty()) return out;
  out.pop_back();
  return out + ",\"config\":" + config + "}";
}

// The parts of an answer that are used. A part is "" if it is missing or is not a text.
struct Answer {
  std::string kind, version;
  bool has_status = false;
  std::string token, cert_pem, key_pem, expires;
};

std::string Text(const simdjson::dom::object& from, std::string_view key) {
  std::string_view value;
  return from.at_key(key).get(value) == simdjson::SUCCESS ? std::string(value) : "";
}

std::string Text(const YamlNode& from, std::string_view key) {
  const YamlNode* value = from.Find(key);
  return value != nullptr && value->IsScalar() ? value->text : "";
}

// `From` is an object of JSON or of YAML.
template <typename From>
Answer TakeParts(const From& root, const From* status) {
  Answer answer{.kind = Text(root, "kind"), .version = Text(root, "apiVersion")};
  if (status == nullptr) return answer;
  answer.has_status = true;
  answer.token = Text(*status, "token");
  answer.cert_pem = Text(*status, "clientCertificateData");
  answer.key_pem = Text(*status, "clientKeyData");
  answer.expires = Text(*status, "expirationTimestamp");
  return answer;
}

std::optional<Answer> ReadJson(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::object root, status;
  if (text.size() > kAnswerLimits.bytes_max || parser.parse(simdjson::padded_string(text)).get(root)) {
    return std::nullopt;
  }
  const bool has_status = root.at_key("status").get(status) == simdjson::SUCCESS;
  return TakeParts(root, has_status ? &status : nullptr);
}

std::optional<Answer> ReadYaml(std::string_view text) {
  const absl::StatusOr<YamlNode> root = ParseYaml(text, kAnswerLimits);
  if (!root.ok() || !root->IsMap()) return std::nullopt;
  const YamlNode* status = root->Find("status");
  return TakeParts(*root, status != nullptr && status->IsMap() ? status : nullptr);
}

std::string Shown(std::string_view text) { return EscapeForDisplay(CutUtf8(text, kShownBytes)); }

UnixNs AtSecond(int64_t seconds) {
  constexpr int64_t kSecondsMax = std::numeric_limits<int64_t>::max() / kNsPerSecond - 1;
  return UnixNs{std::clamp(seconds, int64_t{0}, kSecondsMax) * kNsPerSecond};
}

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* cert) const { X509_free(cert); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

// Without a callback, OpenSSL would ask for the passphrase of an encrypted key on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

// Checks a certificate and its key. Returns the time when the certificate expires.
absl::StatusOr<UnixNs> CheckPair(const std::string& cert_pem, const std::string& key_pem) {
  const auto memory = [](const std::string& text) {
    return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  };
  const std::unique_ptr<X509, Free> cert(PEM_read_bio_X509(memory(cert_pem).get(), nullptr, NoPassphrase, nullptr));
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(memory(key_pem).get(), nullptr, NoPassphrase, nullptr));
  const bool is_pair = cert != nullptr && key != nullptr && X509_check_private_key(cert.get(), key.get()) == 1;
  std::tm end{};
  const bool has_end = cert != nullptr && ASN1_TIME_to_tm(X509_get0_notAfter(cert.get()), &end) == 1;
  ERR_clear_error();
  if (cert == nullptr || !has_end) return Invalid("status.clientCertificateData is not a certificate in PEM");
  if (key == nullptr) return Invalid("status.clientKeyData is not a private key in PEM");
  if (!is_pair) return Invalid("status.clientKeyData is not the key of the certificate");
  return AtSecond(timegm(&end));
}

absl::Status CheckCredentials(const ExecCredential& credential) {
  if (credential.token.empty() && credential.cert_pem.empty() && credential.key_pem.empty()) {
    return Invalid("its answer has no credentials: status.token and status.clientCertificateData are missing");
  }
  if (credential.cert_pem.empty() != credential.key_pem.empty()) {
    return Invalid("its answer has only one of status.clientCertificateData and status.clientKeyData");
  }
  if (!std::all_of(credential.token.begin(), credential.token.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
    return Invalid("status.token has spaces or other bytes that a token cannot have");
  }
  return absl::OkStatus();
}

absl::StatusOr<UnixNs> ParseExpiry(std::string_view text) {
  const std::optional<Rfc3339Time> time = ParseRfc3339(text);
  if (!time) {
    return Invalid(
        fmt::format("status.expirationTimestamp \"{}\" is not a time like 2026-01-02T03:04:05Z", Shown(text)));
  }
  return UnixNs{AtSecond(time->seconds).value + time->ns};
}

}  // namespace

absl::StatusOr<std::string> EncodeExecInfo(const ApiAccess& access) {
  std::string cluster;
  if (access.exec->wants_cluster) {
    ASSIGN_OR_RETURN(cluster, EncodeCluster(access));
    cluster = "\"cluster\":" + cluster + ",";
  }
  // The version is one of the two above, so it needs no escapes.
  return fmt::format(R"({{"kind":"ExecCredential","apiVersion":"{}","spec":{{{}"interactive":false}}}})",
                     access.exec->api_version, cluster);
}

absl::StatusOr<ExecCredential> DecodeExecCredential(std::string_view text, std::string_view api_version) {
  // JSON is almost a subset of YAML, but yaml-cpp refuses escapes such as "\ud83d\ude00". The parsers' messages may
  // contain parts of the text, so they are not shown.
  std::optional<Answer> answer;
  if (Trim(text, kAsciiBlanks).starts_with('{')) answer = ReadJson(text);
  if (!answer) answer = ReadYaml(text);
  if (!answer || answer->kind != "ExecCredential") return Invalid("its output is not an ExecCredential in JSON");
  if (answer->version != api_version) {
    return Invalid(fmt::format("its answer has the apiVersion \"{}\", but the kubeconfig asks for \"{}\"",
                               Shown(answer->version), api_version));
  }
  if (!answer->has_status) return Invalid("its answer has no status, so no credentials");
  ExecCredential credential{.token = std::move(answer->token),
                            .cert_pem = std::move(answer->cert_pem),
                            .key_pem = std::move(answer->key_pem),
                            .expires = {}};
  RETURN_IF_ERROR(CheckCredentials(credential));
  if (!answer->expires.empty()) {
    ASSIGN_OR_RETURN(credential.expires, ParseExpiry(answer->expires));
  }
  if (!credential.cert_pem.empty()) {
    ASSIGN_OR_RETURN(const UnixNs end, CheckPair(credential.cert_pem, credential.key_pem));
    credential.expires = std::min(end, credential.expires.value_or(end));
  }
  return credential;
}

}  // namespace tributary
