#include "cli/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/percent.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

constexpr size_t kBodyBytesMax = 256u << 20;
constexpr long kConnectTimeoutMs = 5'000;
constexpr long kTimeoutMs = 120'000;
constexpr long kUploadStallS = 900;
constexpr int kBusyTriesMax = 60;
constexpr std::chrono::seconds kBusyWait(2);

struct Cleanup {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

size_t AppendBody(char* data, size_t size, size_t count, void* body) {
  auto* out = static_cast<std::string*>(body);
  if (out->size() + size * count > kBodyBytesMax) return 0;  // makes curl stop
  out->append(data, size * count);
  return size * count;
}

absl::StatusCode StatusOf(long http_status) {
  switch (http_status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Returns what the user can do about an answer that refuses the caller, or "".
std::string_view AdviceOf(long http_status, bool has_token) {
  if (http_status == 401) {
    return has_token ? "; check the token of --token-file or TRIBUTARY_TOKEN, or sign in with --tls-cert and --tls-key"
                     : "; sign in with --token-file FILE or TRIBUTARY_TOKEN, or with --tls-cert and --tls-key";
  }
  if (http_status == 403) return "; if a right is missing, ask the operator of the reducer for it";
  return "";
}

absl::Status ServerError(std::string_view url, long code, const std::string& body, bool has_token) {
  std::string error = ParseErrorBody(body);
  if (error.empty()) {
    error = code >= 300 && code < 400 ? "the server redirects to another URL: give the URL of the reducer with --server"
                                      : "the answer gives no reason: check that --server is the URL of a reducer";
  }
  return Error(StatusOf(code),
               fmt::format("{}: HTTP {}: {}{}", url, code, EscapeForDisplay(error), AdviceOf(code, has_token)));
}

// The position of the user name in a URL, and its length with the "@" behind it. The length is 0 if there is none.
std::pair<size_t, size_t> FindUser(std::string_view url) {
  const size_t begin = url.find("://") + 3;
  const std::string_view authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const size_t at = authority.rfind('@');
  return {begin, at == std::string_view::npos ? 0 : at + 1};
}

// One request and its answer.
class Exchange {
 public:
  Exchange(const HttpClient::Options& options, const std::string& url)
      : has_token_(!options.token.empty()), curl_(curl_easy_init()) {
    TRIBUTARY_CHECK(curl_ != nullptr);
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_ERRORBUFFER, error_);
    SetTls(options);
    if (has_token_) {
      Set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      Set(CURLOPT_XOAUTH2_BEARER, options.token.c_str());
    }
    Set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ACCEPT_ENCODING, "");  // all encodings that curl can decode
    Set(CURLOPT_WRITEFUNCTION, AppendBody);
    Set(CURLOPT_WRITEDATA, &body_);
    // A reducer on this machine is not behind a proxy, whatever the environment contains.
    Set(CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  }
  template <typename T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(curl_.get(), option, value);
  }

  // Returns the body of a successful answer. Error messages name `server`.
  absl::StatusOr<std::string> Perform(std::string_view server, std::string_view path) {
    const CURLcode result = curl_easy_perform(curl_.get());
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &code_);
    // A server that has refused an upload does not have to read the rest of it.
    const bool refused = result == CURLE_SEND_ERROR && code_ >= 400;
    if (result == CURLE_WRITE_ERROR && body_.size() > kBodyBytesMax / 2) {
      return Error(
          absl::StatusCode::kResourceExhausted,
          fmt::format("{}{}: the answer is larger than {} MiB: request less data, for example a shorter time range",
                      server, path, kBodyBytesMax >> 20));
    }
    if (result == CURLE_ABORTED_BY_CALLBACK) return Error(absl::StatusCode::kCancelled, "the command was stopped");
    if (result != CURLE_OK && !refused) return NoAnswer(result, server);
    if (code_ != 200 && code_ != 201) return ServerError(fmt::format("{}{}", server, path), code_, body_, has_token_);
    return std::move(body_);
  }
  long code() const { return code_; }

 private:
  void SetTls(const HttpClient::Options& options) {
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!options.tls_ca.empty()) {
      Set(CURLOPT_CAINFO, options.tls_ca.c_str());
      Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // otherwise the system's authorities stay trusted
    } else if (const std::string file = SystemCaFile(); !file.empty()) {
      Set(CURLOPT_CAINFO, file.c_str());
    }
    if (options.tls_cert.empty()) return;
    Set(CURLOPT_SSLCERT, options.tls_cert.c_str());
    Set(CURLOPT_SSLKEY, options.tls_key.c_str());
  }

  absl::Status NoAnswer(CURLcode result, std::string_view server) const {
    // Texts of OpenSSL and names of a certificate, which curl's short text lacks.
    const std::string detail = EscapeForDisplay(*error_ != 0 ? error_ : curl_easy_strerror(result));
    if (result == CURLE_PEER_FAILED_VERIFICATION) {
      return Error(absl::StatusCode::kUnauthenticated,
                   fmt::format("{}: the server's certificate is not trusted ({}): give the file of its authority with "
                               "--tls-ca FILE, and a name of the certificate as the host in --server",
                               server, detail));
    }
    if (detail.find("SSL routines") != std::string::npos) {  // an error of OpenSSL, such as an alert of the server
      return Error(absl::StatusCode::kUnavailable,
                   fmt::format("{}: the TLS connection failed ({}): check that the server uses TLS, and accepts the "
                               "certificate of --tls-cert",
                               server, detail));
    }
    return Error(absl::StatusCode::kUnavailable,
                 fmt::format("no answer from a reducer at {} ({}): start a reducer there, or give the URL of another "
                             "reducer with --server",
                             server, detail));
  }

  const bool has_token_;
  char error_[CURL_ERROR_SIZE] = "";  // curl writes to it until curl_ is destroyed
  const std::unique_ptr<CURL, Cleanup> curl_;
  std::string body_;
  long code_ = 0;
};

// The data to send: `read` reads up to `bytes` bytes from an offset on.
struct Source {
  const std::function<size_t(uint64_t offset, char* to, size_t bytes)>& read;
  uint64_t offset = 0;
};

int StopIfCancelled(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(user))() ? 1 : 0;
}

size_t ReadSource(char* to, size_t size, size_t count, void* user) {
  auto* source = static_cast<Source*>(user);
  const size_t n = source->read(source->offset, to, size * count);
  if (n != CURL_READFUNC_ABORT) source->offset += n;
  return n;
}

}  // namespace

HttpClient::HttpClient(Options options) : options_(std::move(options)) {
  std::string& server = options_.server;
  while (server.ends_with('/')) server.pop_back();
  if (server.find("://") == std::string::npos) server = "http://" + server;
  const auto [user, bytes] = FindUser(server);
  shown_server_ = std::string(server).erase(user, bytes);
}

bool HttpClient::is_https() const { return strncasecmp(options_.server.c_str(), "https://", 8) == 0; }

std::string HttpClient::UrlOf(std::string_view path, const Parameters& parameters) const {
  std::string url = options_.server + std::string(path);
  char separator = '?';
  for (const auto& [key, value] : parameters) {
    url += fmt::format("{}{}={}", separator, key, PercentEncoded(value));
    separator = '&';
  }
  return url;
}

absl::StatusOr<std::string> HttpClient::Get(std::string_view path, const Parameters& parameters) const {
  Exchange exchange(options_, UrlOf(path, parameters));
  exchange.Set(CURLOPT_TIMEOUT_MS, kTimeoutMs);
  if (is_cancelled_) {
    exchange.Set(CURLOPT_NOPROGRESS, 0L);
    exchange.Set(CURLOPT_XFERINFODATA, &is_cancelled_);
    exchange.Set(CURLOPT_XFERINFOFUNCTION, StopIfCancelled);
  }
  return exchange.Perform(shown_server_, path);
}

absl::StatusOr<std::string> HttpClient::Delete(std::string_view path, const Parameters& parameters) const {
  Exchange exchange(options_, UrlOf(path, parameters));
  exchange.Set(CURLOPT_TIMEOUT_MS, kTimeoutMs);
  exchange.Set(CURLOPT_CUSTOMREQUEST, "DELETE");
  return exchange.Perform(shown_server_, path);
}

absl::StatusOr<std::string> HttpClient::PutFrom(std::string_view path, const Parameters& parameters,
                                                const std::function<size_t(uint64_t, char*, size_t)>& read,
                                                uint64_t bytes) const {
  absl::StatusOr<std::string> answer;
  for (int i = 0; i < kBusyTriesMax; ++i) {
    if (i > 0) std::this_thread::sleep_for(kBusyWait);
    Source source{read, 0};
    Exchange exchange(options_, UrlOf(path, parameters));
    exchange.Set(CURLOPT_UPLOAD, 1L);
    exchange.Set(CURLOPT_READFUNCTION, ReadSource);
    exchange.Set(CURLOPT_READDATA, &source);
    exchange.Set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(bytes));
    exchange.Set(CURLOPT_LOW_SPEED_TIME, kUploadStallS);  // the reducer needs some time to read a large file
    exchange.Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    answer = exchange.Perform(shown_server_, path);
    if (exchange.code() != 503) break;
  }
  return answer;
}

absl::StatusOr<std::string> HttpClient::Put(std::string_view path, const Parameters& parameters,
                                            std::string_view content) const {
  auto read = [content](uint64_t offset, char* to, size_t bytes) { return content.copy(to, bytes, offset); };
  return PutFrom(path, parameters, read, content.size());
}

absl::StatusOr<std::string> HttpClient::PutFile(std::string_view path, const Parameters& parameters, int file) const {
  struct stat info{};
  if (fstat(file, &info) != 0) return ErrnoStatus("stat", "the file", errno);
  auto read = [file](uint64_t offset, char* to, size_t bytes) -> size_t {
    const ssize_t n = pread(file, to, bytes, static_cast<off_t>(offset));
    return n < 0 ? CURL_READFUNC_ABORT : static_cast<size_t>(n);
  };
  return PutFrom(path, parameters, read, static_cast<uint64_t>(info.st_size));
}

}  // namespace tributary::cli
