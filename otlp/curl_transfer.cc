#include "otlp/curl_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/status.h"
#include "base/system_ca.h"
#include "otlp/no_proxy.h"

namespace tributary::otlp {
namespace {

// TCP probes keep an idle connection alive in NAT and load balancers, and find out if its other end is gone.
constexpr long kKeepAliveIdleS = 30, kKeepAliveIntervalS = 10;
// The longest wait for the socket. Cancel ends the wait at once, and libcurl shortens it for its own timers. So this
// only limits the harm of a lost wakeup.
constexpr int64_t kPollNs = kNsPerSecond;

std::string UrlOf(const TransportOptions& options, const std::string& path) {
  std::string target = options.target;  // in a URL, the '%' before an IPv6 address's interface is encoded
  if (const size_t percent = target.find('%'); percent != target.npos) target.replace(percent, 1, "%25");
  return fmt::format("{}://{}{}", options.tls ? "https" : "http", target, path);
}

// Returns libcurl's explanation of an error. If the explanation could contain the URL of a proxy, which may have a
// password in it, returns the general text of the error instead.
std::string_view ErrorText(CURLcode result, const char* explanation) {
  const std::string_view text = explanation;
  const bool may_be_secret =
      result == CURLE_COULDNT_RESOLVE_PROXY || text.find("://") != text.npos || text.find('@') != text.npos;
  return text.empty() || may_be_secret ? curl_easy_strerror(result) : text;
}

}  // namespace

CallResult NoAnswer(absl::StatusCode code, std::string_view why) {
  return {.status = Error(code, fmt::format("no answer: {}", why)), .may_retry = true, .retry_after_ns = {}};
}

absl::StatusOr<std::unique_ptr<CurlTransfer>> CurlTransfer::Make(const TransportOptions& options,
                                                                 const std::string& path) {
  // Only checks the files. curl reads them itself.
  if (options.tls) RETURN_IF_ERROR(ReadTlsFiles(options.tls_files).status());
  std::unique_ptr<CurlTransfer> transfer(new CurlTransfer());
  if (transfer->multi_ == nullptr || transfer->easy_ == nullptr) {
    return Error(absl::StatusCode::kResourceExhausted, "no memory for libcurl");
  }
  transfer->SetUp(options, path);
  return transfer;
}

CurlTransfer::CurlTransfer() : multi_(curl_multi_init()), easy_(curl_easy_init()) {}

void CurlTransfer::SetUp(const TransportOptions& options, const std::string& path) {
  Set(CURLOPT_URL, UrlOf(options, path).c_str());
  Set(CURLOPT_PROTOCOLS_STR, options.tls ? "https" : "http");
  Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(CURLOPT_USERAGENT, UserAgent(options.version).c_str());
  Set(CURLOPT_FOLLOWLOCATION, 0L);
  Set(CURLOPT_NOPROXY, NoProxyHosts(getenv("no_proxy"), getenv("NO_PROXY")).c_str());
  Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_QUICK_EXIT, 1L);  // a slow name server must not delay the end of the program
  Set(CURLOPT_MAXLIFETIME_CONN, static_cast<long>(kConnectionAgeMaxNs / kNsPerSecond));
  Set(CURLOPT_TCP_KEEPALIVE, 1L);
  Set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleS);
  Set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalS);
  Set(CURLOPT_ERRORBUFFER, error_);
  if (options.tls) SetTls(options.tls_files);
}

// curl reads the files again for each new connection. Such a connection must not resume a session of an older one,
// because then neither end would check the new certificates.
void CurlTransfer::SetTls(const TlsFiles& files) {
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  Set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
  Set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
  if (!files.ca.empty()) {
    Set(CURLOPT_CAINFO, files.ca.c_str());
    Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // otherwise the system's authorities stay trusted
  } else if (const std::string file = SystemCaFile(); !file.empty()) {
    Set(CURLOPT_CAINFO, file.c_str());
  }
  if (files.cert.empty()) return;
  Set(CURLOPT_SSLCERT, files.cert.c_str());
  Set(CURLOPT_SSLKEY, files.key.c_str());
  Set(CURLOPT_KEYPASSWD, "");  // otherwise OpenSSL asks for the passphrase of an encrypted key on the terminal
}

CURLcode CurlTransfer::Perform(int64_t timeout_ns) {
  Set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<int64_t>(timeout_ns / kNsPerMs, 1)));
  error_[0] = 0;
  has_begun_ = false;
  curl_multi_remove_handle(multi_.get(), easy_.get());  // of the last transfer, if there was one
  if (curl_multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) return CURLE_FAILED_INIT;
  return Run();
}

CURLcode CurlTransfer::Run() {
  int running = 1;
  while (true) {
    if (IsCancelled()) return CURLE_ABORTED_BY_CALLBACK;
    has_begun_ = true;
    if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) return CURLE_FAILED_INIT;
    if (running == 0) break;
    if (!Wait(CURL_SOCKET_BAD, 0, kPollNs).ok()) return CURLE_FAILED_INIT;
  }
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
  return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
}

size_t CurlTransfer::BytesUploaded() const {
  curl_off_t bytes = 0;
  if (has_begun_) curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &bytes);
  return static_cast<size_t>(bytes);
}

absl::StatusOr<short> CurlTransfer::Wait(curl_socket_t socket, short events, int64_t timeout_ns) {
  curl_waitfd extra{.fd = socket, .events = events, .revents = 0};
  const int64_t ms = (std::clamp<int64_t>(timeout_ns, 0, kPollNs) + kNsPerMs - 1) / kNsPerMs;
  const CURLMcode code =
      curl_multi_poll(multi_.get(), &extra, socket == CURL_SOCKET_BAD ? 0 : 1, static_cast<int>(ms), nullptr);
  if (code != CURLM_OK) {
    return Error(absl::StatusCode::kInternal, fmt::format("cannot wait for a socket: {}", curl_multi_strerror(code)));
  }
  return extra.revents;
}

void CurlTransfer::CloseConnections() {
  curl_multi_remove_handle(multi_.get(), easy_.get());
  std::unique_ptr<CURLM, FreeMulti> fresh(curl_multi_init());
  if (fresh == nullptr) return;
  const std::lock_guard lock(mutex_);
  multi_.swap(fresh);
}

void CurlTransfer::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  curl_multi_wakeup(multi_.get());
}

bool CurlTransfer::IsCancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

CallResult CurlTransfer::NoAnswer(CURLcode code) const {
  if (code == CURLE_ABORTED_BY_CALLBACK) return CancelledCall();
  return otlp::NoAnswer(
      code == CURLE_OPERATION_TIMEDOUT ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable,
      ErrorText(code, error_));
}

}  // namespace tributary::otlp
