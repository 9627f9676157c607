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
#include "base/log.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "base/trim.h"
#include "otlp/http_answer.h"
#include "otlp/json.h"

namespace tributary::otlp {
namespace {

constexpr int kGzipLevel = 6;
constexpr long kConnectionAgeMaxS = 300;
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
      return;
    }
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

// A receiver on this machine is not behind a proxy.
std::string NoProxy() {
  const char* text = getenv("no_proxy");
  if (text == nullptr) text = getenv("NO_PROXY");
  return fmt::format("{}{}localhost,127.0.0.1,::1", text == nullptr ? "" : text, text == nullptr ? "" : ",");
}

}  // namespace

// The handles of libcurl.
class HttpTransport::Connection {
 public:
  Connection(Options options, const Clock& clock)
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
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_USERAGENT, ("OTel-OTLP-Exporter-cpp/" + options_.common.version).c_str());
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_NOPROXY, NoProxy().c_str());
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

  SendResult Call(const google::protobuf::Message& request, google::protobuf::Message* response, int64_t timeout_ns) {
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
    if (result == CURLE_ABORTED_BY_CALLBACK)
      return {.status = absl::CancelledError("export is stopping"), .may_retry = true};
    // A receiver that refuses a request need not read all of it, and may close the connection early.
    const bool is_answer = answer.status >= 400 || (answer.status >= 200 && (result == CURLE_OK || answer.is_cut));
    return is_answer ? ReadHttpAnswer(answer, clock_.Unix(), response) : NoAnswer(result, reception);
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

  // curl reads the files again for each new connection.
  void SetTls() {
    const TlsFiles& files = options_.common.tls_files;
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    if (!files.ca.empty()) {
      Set(CURLOPT_CAINFO, files.ca.c_str());
      Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // otherwise the system's authorities stay trusted
    } else if (const std::string file = SystemCaFile(); !file.empty()) {
      Set(CURLOPT_CAINFO, file.c_str());
    }
    if (files.cert.empty()) return;
    Set(CURLOPT_SSLCERT, files.cert.c_str());
    Set(CURLOPT_SSLKEY, files.key.c_str());
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

  SendResult NoAnswer(CURLcode result, const Reception& reception) const {
    const auto code =
        result == CURLE_OPERATION_TIMEDOUT ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable;
    const bool is_flood = reception.header_bytes > kAnswerHeaderBytesMax;
    const std::string why = is_flood ? "the headers of the answer are too long"
                                     : EscapeForDisplay(error_[0] != 0 ? error_ : curl_easy_strerror(result));
    return {.status = Error(code, fmt::format("no answer: {}", why)), .may_retry = true};
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
  if (options.common.tls) RETURN_IF_ERROR(ReadTlsFiles(options.common.tls_files).status());
  auto connection = std::make_unique<Connection>(std::move(options), clock);
  RETURN_IF_ERROR(connection->Prepare());
  return std::unique_ptr<HttpTransport>(new HttpTransport(std::move(connection)));
}

HttpTransport::HttpTransport(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
HttpTransport::~HttpTransport() = default;

SendResult HttpTransport::Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                               int64_t timeout_ns) {
  return connection_->Call(request, response, timeout_ns);
}

void HttpTransport::Cancel() { connection_->Cancel(); }

}  // namespace tributary::otlp
