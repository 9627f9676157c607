#include "k8s-collector/watch/curl_access.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/status.h"
#include "base/system_ca.h"
#include "k8s-collector/watch/curl_url.h"
#include "k8s-collector/watch/no_proxy.h"
#include "k8s-collector/watch/secret_text.h"

namespace tributary {
namespace {

absl::Status SetBlob(CURL* easy, CURLoption option, const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  curl_blob blob{.data = const_cast<char*>(text.data()), .len = text.size(), .flags = CURL_BLOB_COPY};
  if (curl_easy_setopt(easy, option, &blob) == CURLE_OK) return absl::OkStatus();
  return Error(absl::StatusCode::kResourceExhausted, "no memory for libcurl");
}

// Returns the value that libcurl uses.
std::string_view NoProxyOfEnvironment() {
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    if (const char* value = std::getenv(name); value != nullptr) return value;
  }
  return "";
}

}  // namespace

void CurlAccess::FreeList::operator()(curl_slist* list) const { curl_slist_free_all(list); }

void CurlAccess::Append(List& list, const std::string& line) {
  list.reset(curl_slist_append(list.release(), line.c_str()));
}

absl::Status CurlAccess::Apply(CURL* easy, const ApiAccess& access, std::string_view target, std::string_view accept) {
  headers_.reset();
  connect_to_.reset();
  Append(headers_, fmt::format("Accept: {}", accept));
  RETURN_IF_ERROR(SetServer(easy, access, target));
  RETURN_IF_ERROR(SetProxy(easy, access));
  RETURN_IF_ERROR(SetTls(easy, access));
  ASSIGN_OR_RETURN(const std::string token, SecretText(access.token_file, access.token));
  if (token.find_first_of("\r\n") != std::string::npos) {
    return Error(absl::StatusCode::kFailedPrecondition, "the token has more than one line");
  }
  if (!token.empty()) Append(headers_, "Authorization: Bearer " + token);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  return absl::OkStatus();
}

// libcurl has no option for the name in the server's certificate. So the URL gets this name, and CONNECT_TO makes
// libcurl connect to the server.
absl::Status CurlAccess::SetServer(CURL* easy, const ApiAccess& access, std::string_view target) {
  const std::string url = access.server + std::string(target);
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  if (access.tls_server_name.empty() || !url.starts_with("https://")) return absl::OkStatus();
  CurlUrl parsed(url);
  const std::string host = parsed.Part(CURLUPART_HOST), port = parsed.Part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const std::string written_port = parsed.Part(CURLUPART_PORT);
  const bool is_ipv6 = access.tls_server_name.find(':') != std::string::npos;
  const std::string name = is_ipv6 ? fmt::format("[{}]", access.tls_server_name) : access.tls_server_name;
  if (host.empty() || !parsed.Set(CURLUPART_HOST, name)) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 fmt::format("the cluster's tls-server-name {} or server is not valid", access.tls_server_name));
  }
  const std::string renamed = parsed.Part(CURLUPART_URL);
  curl_easy_setopt(easy, CURLOPT_URL, renamed.c_str());
  Append(connect_to_, fmt::format("::{}:{}", host, port));
  curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to_.get());
  Append(headers_, fmt::format("Host: {}{}{}", host, written_port.empty() ? "" : ":", written_port));
  return absl::OkStatus();
}

absl::Status CurlAccess::SetProxy(CURL* easy, const ApiAccess& access) {
  // Without these two, a proxy's answer to CONNECT would look like the server's, and a proxy could get the token. Both
  // also apply to a proxy of the environment.
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  if (access.proxy_url.empty()) {
    // libcurl would compare no_proxy with the name in the URL, which SetServer has changed.
    if (access.tls_server_name.empty()) return absl::OkStatus();
    const std::string host = CurlUrl(access.server).Part(CURLUPART_HOST);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, IsWithoutProxy(host, NoProxyOfEnvironment()) ? "*" : "");
    return absl::OkStatus();
  }
  std::string url = access.proxy_url;
  const std::string scheme = CurlUrl(url).Part(CURLUPART_SCHEME);
  // Like kubectl, let the proxy resolve the server's name: it may be known only there.
  if (scheme == "socks5") url.replace(0, scheme.size(), "socks5h");
  curl_easy_setopt(easy, CURLOPT_PROXY, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROXYPORT, scheme == "http" ? 80L : scheme == "https" ? 443L : 1080L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "");  // not that of the environment
  if (scheme != "https") return absl::OkStatus();
  if (access.insecure) {
    curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
  }
  // kubectl checks the proxy's certificate with the cluster's authority. A proxy for several clusters rather has a
  // certificate of an authority that the system trusts.
  ASSIGN_OR_RETURN(const std::string authority, SecretText(access.ca_file, access.ca_pem));
  const std::string system_file = SystemCaFile();
  if (authority.empty() || system_file.empty()) {
    if (!system_file.empty()) curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, system_file.c_str());
    return SetBlob(easy, CURLOPT_PROXY_CAINFO_BLOB, authority);
  }
  ASSIGN_OR_RETURN(const std::string system, SecretText(system_file, ""));
  return SetBlob(easy, CURLOPT_PROXY_CAINFO_BLOB, authority + "\n" + system + "\n");
}

absl::Status CurlAccess::SetTls(CURL* easy, const ApiAccess& access) {
  if (access.insecure) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  // The cluster's own CA, set below, replaces the system's.
  if (const std::string file = SystemCaFile(); !file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, file.c_str());
  ASSIGN_OR_RETURN(const std::string authority, SecretText(access.ca_file, access.ca_pem));
  RETURN_IF_ERROR(SetBlob(easy, CURLOPT_CAINFO_BLOB, authority));
  ASSIGN_OR_RETURN(const std::string cert, SecretText(access.cert_file, access.cert_pem));
  RETURN_IF_ERROR(SetBlob(easy, CURLOPT_SSLCERT_BLOB, cert));
  ASSIGN_OR_RETURN(const std::string key, SecretText(access.key_file, access.key_pem));
  return SetBlob(easy, CURLOPT_SSLKEY_BLOB, key);
}

}  // namespace tributary
