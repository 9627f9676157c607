#include "otlp/http_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <libdeflate.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/ascii_case.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "base/trim.h"
#include "otlp/http_answer.h"
#include "otlp/json.h"
#include "otlp/no_proxy.h"

namespace tributary::otlp {
namespace {

constexpr int kGzipLevel = 6;  // the default of gzip(1): higher levels save little and cost much more time
constexpr long kConnectionAgeMaxS = 300;
// The longest wait for the socket. Cancel ends the wait at once, and libcurl shortens it for its own timers. So this
// only limits the harm of a lost wakeup.
constexpr int kPollMs = 1000;

// CURL and CURLM are both `void`.
struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct Free {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  void operator()(libdeflate_compressor* compressor) const { libdeflate_free_compressor(compressor); }
};

// Receives an answer.
struct Reception {
  HttpAnswer answer;
  size_t header_bytes = 0;
  bool has_head = false;  // all headers of the answer have arrived

  static size_t OnHeader(char* data, size_t size, size_t count, void* user) {
    auto& self = *static_cast<Reception*>(user);
    const std::string_view line(data, size * count);
    self.header_bytes += line.size();
    if (self.header_bytes > HttpTransport::kAnswerHeaderBytesMax) return 0;  // makes curl stop
    self.Read(line);
    return line.size();
  }
  static size_t OnBody(char* data, size_t size, size_t count, void* user) {
    HttpAnswer& answer = static_cast<Reception*>(user)->answer;
    const size_t bytes = size * count, room = HttpTransport::kAnswerBytesMax - answer.body.size();
    answer.body.append(data, std::min(bytes, room));
    answer.is_cut = bytes > room;
    return answer.is_cut ? 0 : bytes;
  }

  void Read(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // the answer itself, after an interim one such as 100 Continue
      answer.content_type.clear();
      answer.retry_after.clear();
      answer.date.clear();
      has_head = false;
      return;
    }
    if (line == "\r\n" || line == "\n") has_head = true;
    const size_t colon = line.find(':');
    if (colon == line.npos) return;
    const std::string_view name = line.substr(0, colon), value = Trim(line.substr(colon + 1), kAsciiBlanks);
    if (EqualsIgnoringCase(name, "content-type")) answer.content_type = value;
    if (EqualsIgnoringCase(name, "retry-after")) answer.retry_after = value;
    if (EqualsIgnoringCase(name, "date")) answer.date = value;
  }
};

std::string UrlOf(const HttpTransport::Options& options) {
  std::string target = options.common.target;  // in a URL, the '%' before an IPv6 address's interface is encoded
  if (const size_t percent = target.find('%'); percent != target.npos) target.replace(percent, 1, "%25");
  return fmt::format("{}://{}{}", options.common.tls ? "https" : "http", target, options.path);
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

class HttpTransport::Impl {
 public:
  Impl(Options options, const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        multi_(curl_multi_init()),
        easy_(curl_easy_init()),
        compressor_(libdeflate_alloc_compressor(kGzipLevel)) {}

  // Sets all options that are the same for every request.
  absl::Status Prepare() {
    if (multi_ == nullptr || easy_ == nullptr || compressor_ == nullptr || !AddHeaders()) {
      return Error(absl::StatusCode::kResourceExhausted, "no memory for libcurl");
    }
    Set(CURLOPT_URL, UrlOf(options_).c_str());
    Set(CURLOPT_PROTOCOLS_STR, options_.common.tls ? "https" : "http");
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_USERAGENT, UserAgent(options_.common.version).c_str());
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_NOPROXY, NoProxyHosts(getenv("no_proxy"), getenv("NO_PROXY")).c_str());
    Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_QUICK_EXIT, 1L);  // a slow name server must not delay the end of the program
    Set(CURLOPT_MAXLIFETIME_CONN, kConnectionAgeMaxS);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_HEADERFUNCTION, Reception::OnHeader);
    Set(CURLOPT_WRITEFUNCTION, Reception::OnBody);
    if (options_.common.tls) SetTls();
    return absl::OkStatus();
  }

  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response, int64_t timeout_ns) {
    std::string body = options_.encoding == Encoding::kJson ? ToJson(request) : request.SerializeAsString();
    if (options_.common.gzip) body = Gzip(body);
    Reception reception;
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    Set(CURLOPT_POSTFIELDS, body.data());
    Set(CURLOPT_HEADERDATA, &reception);
    Set(CURLOPT_WRITEDATA, &reception);
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<int64_t>(timeout_ns / kNsPerMs, 1)));
    error_[0] = 0;
    const CURLcode result = Perform();
    HttpAnswer& answer = reception.answer;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &answer.status);
    if (result == CURLE_ABORTED_BY_CALLBACK) return CancelledCall();
    // The body of a refusal is only its explanation. A receiver that refuses a request need not read all of it, and may
    // close the connection early.
    const bool is_whole = answer.status >= 300 || (answer.status >= 200 && (result == CURLE_OK || answer.is_cut));
    return reception.has_head && is_whole ? ReadHttpAnswer(answer, clock_.Unix(), response)
                                          : NoAnswer(result, reception);
  }

  void Cancel() {
    cancelled_ = true;
    curl_multi_wakeup(multi_.get());
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(easy_.get(), option, value);
  }

  bool AddHeader(const std::string& line) {
    curl_slist* list = curl_slist_append(headers_.get(), line.c_str());
    if (list == nullptr) return false;
    (void)headers_.release();  // `list` owns it now
    headers_.reset(list);
    return true;
  }
  bool AddHeaders() {
    bool ok = AddHeader(options_.encoding == Encoding::kJson ? "Content-Type: application/json"
                                                             : "Content-Type: application/x-protobuf");
    // Otherwise curl may wait for a second before it sends a large body.
    ok = ok && AddHeader("Expect:");
    if (options_.common.gzip) ok = ok && AddHeader("Content-Encoding: gzip");
    for (const auto& [name, value] : options_.common.headers) {
      // A header without a value ends with a semicolon for curl.
      ok = ok && AddHeader(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
    }
    return ok;
  }

  // curl reads the files again for each new connection. Such a connection must not resume a session of an older one,
  // because then neither end would check the new certificates.
  void SetTls() {
    const TlsFiles& files = options_.common.tls_files;
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

  std::string Gzip(const std::string& bytes) {
    std::string out(libdeflate_gzip_compress_bound(compressor_.get(), bytes.size()), '\0');
    out.resize(libdeflate_gzip_compress(compressor_.get(), bytes.data(), bytes.size(), out.data(), out.size()));
    return out;
  }

  // Transfers until the end, or until Cancel.
  CURLcode Perform() {
    if (curl_multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) return CURLE_FAILED_INIT;
    const CURLcode result = Transfer();
    curl_multi_remove_handle(multi_.get(), easy_.get());
    return result;
  }
  CURLcode Transfer() {
    int running = 1;
    while (true) {
      if (cancelled_) return CURLE_ABORTED_BY_CALLBACK;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (running == 0) break;
      if (curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr) != CURLM_OK) return CURLE_FAILED_INIT;
    }
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
  }

  CallResult NoAnswer(CURLcode result, const Reception& reception) const {
    const auto code =
        result == CURLE_OPERATION_TIMEDOUT ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable;
    std::string_view why = ErrorText(result, error_);
    if (reception.header_bytes > kAnswerHeaderBytesMax) {
      why = "the headers of the answer are too long";
    } else if (result == CURLE_OK) {
      why = "the receiver closed the connection before the end of the answer's headers";
    }
    return {.status = Error(code, fmt::format("no answer: {}", why)), .may_retry = true, .retry_after_ns = {}};
  }

  const Options options_;
  const Clock& clock_;
  std::atomic<bool> cancelled_{false};
  char error_[CURL_ERROR_SIZE] = "";  // curl writes to it until easy_ is destroyed
  std::unique_ptr<curl_slist, Free> headers_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;  // owns the connections; destroyed after easy_
  const std::unique_ptr<CURL, FreeEasy> easy_;
  const std::unique_ptr<libdeflate_compressor, Free> compressor_;
};

absl::StatusOr<std::unique_ptr<HttpTransport>> HttpTransport::Make(Options options, const Clock& clock) {
  // Only checks the files. curl reads them itself.
  if (options.common.tls) RETURN_IF_ERROR(ReadTlsFiles(options.common.tls_files).status());
  auto impl = std::make_unique<Impl>(std::move(options), clock);
  RETURN_IF_ERROR(impl->Prepare());
  return std::unique_ptr<HttpTransport>(new HttpTransport(std::move(impl)));
}

HttpTransport::HttpTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpTransport::~HttpTransport() = default;

CallResult HttpTransport::Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                               int64_t timeout_ns) {
  return impl_->Call(request, response, timeout_ns);
}

void HttpTransport::Cancel() { impl_->Cancel(); }

}  // namespace tributary::otlp
