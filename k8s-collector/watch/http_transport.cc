#include "k8s-collector/watch/http_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <utility>

#include "base/number.h"
#include "base/status.h"
#include "base/version.h"
#include "k8s-collector/watch/curl_access.h"
#include "k8s-collector/watch/curl_loop.h"
#include "k8s-collector/watch/proxy_url.h"

namespace tributary {
namespace {

constexpr long kConnectTimeoutMs = 10'000;
constexpr long kKeepAliveSeconds = 30;

// Returns libcurl's message without the duration in it, so that the same problem always has the same message:
// "Failed to connect to h port 1 after 3 ms: …" becomes "Failed to connect to h port 1: …".
std::string WithoutDuration(std::string_view message) {
  constexpr std::string_view kAfter = " after ";
  const size_t begin = message.find(kAfter);
  if (begin == message.npos) return std::string(message);
  std::string_view rest = message.substr(begin + kAfter.size());
  if (!TakeNumber<uint64_t>(rest)) return std::string(message);
  for (const std::string_view unit : {" milliseconds", " ms"}) {
    if (rest.starts_with(unit)) return fmt::format("{}{}", message.substr(0, begin), rest.substr(unit.size()));
  }
  return std::string(message);
}

// Returns the message for a transfer that failed with `code`. `detail` is libcurl's message. Some of libcurl's messages
// about the proxy contain its whole URL, with the password. A kubeconfig's proxy-url has been checked, so its host may
// be shown.
std::string PublicMessage(CURLcode code, std::string_view detail, bool has_proxy_url) {
  const bool is_unsupported = detail.starts_with("Unsupported proxy");
  if (!has_proxy_url && (is_unsupported || code == CURLE_COULDNT_RESOLVE_PROXY)) {
    return "the proxy of the environment (https_proxy, http_proxy or all_proxy) is not a valid URL, or its host name "
           "cannot be resolved";
  }
  if (is_unsupported) return "libcurl does not support this kind of proxy";
  return WithoutDuration(detail);
}

}  // namespace

// State that the requests of one transport share.
struct HttpTransport::Impl {
  Impl(Loop& on, ApiAccess how, Metrics& metrics)
      : loop(on),
        given(std::move(how)),
        access(given),
        curl(on),
        bytes(metrics.AddCounter("tributary_k8s_received_bytes_total",
                                 "Bytes of the answers that the API server sent.")) {}

  Loop& loop;
  const ApiAccess given;
  ApiAccess access;  // `given`, with the credentials of Use
  CurlLoop curl;
  Counter& bytes;
};

namespace {

class CurlRequest : public ApiTransport::Request, public CurlLoop::Transfer {
 public:
  CurlRequest(Loop& loop, CurlLoop& curl, Counter& bytes, ApiTransport::Callbacks callbacks)
      : curl_(curl), bytes_(bytes), callbacks_(std::move(callbacks)), refuse_(loop, [this] { OnRefused(); }) {}

  ~CurlRequest() override {
    if (easy_ != nullptr) {
      curl_.Remove(easy_);
      curl_easy_cleanup(easy_);
    }
  }

  void Start(const ApiAccess& access, std::string_view target, std::string_view accept) {
    refused_ = SetUp(access, target, accept);
    if (refused_.ok()) {
      curl_.Add(easy_, *this);
    } else {
      refuse_.StartOnce(0);
    }
  }

  void OnDone(int curl_code) override {
    absl::Status status;
    if (no_more_wanted_) {
      status = Error(absl::StatusCode::kCancelled, "no more data is needed");
    } else if (curl_code != CURLE_OK) {
      const auto code = static_cast<CURLcode>(curl_code);
      const char* detail = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
      status = Error(absl::StatusCode::kUnavailable, PublicMessage(code, detail, !proxy_.empty()));
      if (!proxy_.empty()) status = WithContext(status, fmt::format("through the proxy {}", proxy_));
    }
    auto on_end = std::move(callbacks_.on_end);
    on_end(std::move(status));  // may destroy this
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(easy_, option, value);
  }

  absl::Status SetUp(const ApiAccess& access, std::string_view target, std::string_view accept) {
    easy_ = curl_easy_init();
    if (easy_ == nullptr) return Error(absl::StatusCode::kResourceExhausted, "no memory for libcurl");
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ACCEPT_ENCODING, "gzip");
    Set(CURLOPT_USERAGENT, "tributary-k8s-collector/" TRIBUTARY_VERSION);
    Set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
    Set(CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_HEADERFUNCTION, OnHeader);
    Set(CURLOPT_HEADERDATA, this);
    Set(CURLOPT_WRITEFUNCTION, OnBytes);
    Set(CURLOPT_WRITEDATA, this);
    proxy_ = access.proxy_url.empty() ? "" : PublicProxyUrl(access.proxy_url);
    return options_.Apply(easy_, access, target, accept);
  }

  void OnRefused() {
    auto on_end = std::move(callbacks_.on_end);
    on_end(Error(absl::StatusCode::kFailedPrecondition, Message(refused_)));
  }

  static size_t OnHeader(char* data, size_t size, size_t count, void* user) {
    auto& request = *static_cast<CurlRequest*>(user);
    const std::string_view line(data, size * count);
    if (line == "\r\n" || line == "\n") request.OnHeadersEnd();
    return size * count;
  }

  void OnHeadersEnd() {
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (status < 200 || answered_) return;  // 100 Continue and the like; trailers
    answered_ = true;
    callbacks_.on_answer(static_cast<int>(status), retry_after_s);
  }

  static size_t OnBytes(char* data, size_t size, size_t count, void* user) {
    auto& request = *static_cast<CurlRequest*>(user);
    const size_t bytes = size * count;
    request.bytes_.Add(bytes);
    if (request.callbacks_.on_bytes({data, bytes})) return bytes;
    request.no_more_wanted_ = true;
    return CURL_WRITEFUNC_ERROR;
  }

  CurlLoop& curl_;
  Counter& bytes_;
  ApiTransport::Callbacks callbacks_;
  CURL* easy_ = nullptr;
  CurlAccess options_;
  std::string proxy_;  // without password; "": none of the kubeconfig
  char error_[CURL_ERROR_SIZE] = {};
  bool answered_ = false, no_more_wanted_ = false;
  absl::Status refused_;  // by this class, before anything was sent
  Timer refuse_;
};

}  // namespace

HttpTransport::HttpTransport(Loop& loop, ApiAccess access, Metrics& metrics)
    : impl_(std::make_unique<Impl>(loop, std::move(access), metrics)) {}
HttpTransport::~HttpTransport() = default;

void HttpTransport::Use(const ExecCredential& credential) {
  ApiAccess& access = impl_->access;
  access = impl_->given;
  if (!credential.token.empty()) access.token = credential.token;
  if (credential.cert_pem.empty()) return;
  access.cert_file.clear();
  access.key_file.clear();
  access.cert_pem = credential.cert_pem;
  access.key_pem = credential.key_pem;
}

std::unique_ptr<ApiTransport::Request> HttpTransport::Get(std::string_view target, std::string_view accept,
                                                          Callbacks callbacks) {
  auto request = std::make_unique<CurlRequest>(impl_->loop, impl_->curl, impl_->bytes, std::move(callbacks));
  request->Start(impl_->access, target, accept);
  return request;
}

}  // namespace tributary
