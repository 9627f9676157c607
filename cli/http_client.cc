#include "cli/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

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

absl::Status ServerError(std::string_view url, long code, const std::string& body) {
  std::string error = ParseErrorBody(body);
  if (error.empty()) error = "the answer gives no reason: check that --server is the URL of a reducer";
  auto status = code == 400   ? absl::StatusCode::kInvalidArgument
                : code == 404 ? absl::StatusCode::kNotFound
                              : absl::StatusCode::kInternal;
  return Error(status, fmt::format("{}: HTTP {}: {}", url, code, EscapeForDisplay(error)));
}

// One request and its answer.
class Exchange {
 public:
  explicit Exchange(std::string url) : url_(std::move(url)), curl_(curl_easy_init()) {
    TRIBUTARY_CHECK(curl_ != nullptr);
    Set(CURLOPT_URL, url_.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    if (const std::string file = SystemCaFile(); !file.empty()) Set(CURLOPT_CAINFO, file.c_str());
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

  // Returns the body of a successful answer.
  absl::StatusOr<std::string> Perform(std::string_view server, std::string_view path) {
    const CURLcode result = curl_easy_perform(curl_.get());
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &code_);
    // A server that has refused an upload does not have to read the rest of it.
    const bool refused = result == CURLE_SEND_ERROR && code_ >= 400;
    if (result == CURLE_WRITE_ERROR && body_.size() > kBodyBytesMax / 2) {
      return Error(
          absl::StatusCode::kResourceExhausted,
          fmt::format("{}: the answer is larger than {} MiB: request less data, for example a shorter time range", url_,
                      kBodyBytesMax >> 20));
    }
    if (result == CURLE_ABORTED_BY_CALLBACK) return Error(absl::StatusCode::kCancelled, "the command was stopped");
    if (result != CURLE_OK && !refused) {
      return Error(absl::StatusCode::kUnavailable,
                   fmt::format("no answer from a reducer at {} ({}): start a reducer there, or give the URL of another "
                               "reducer with --server",
                               server, curl_easy_strerror(result)));
    }
    if (code_ != 200 && code_ != 201) return ServerError(fmt::format("{}{}", server, path), code_, body_);
    return std::move(body_);
  }
  long code() const { return code_; }

 private:
  const std::string url_;
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

HttpClient::HttpClient(std::string server) : server_(std::move(server)) {
  while (server_.ends_with('/')) server_.pop_back();
  if (server_.find("://") == std::string::npos) server_ = "http://" + server_;
}

std::string HttpClient::UrlOf(std::string_view path, const Parameters& parameters) const {
  std::string url = server_ + std::string(path);
  char separator = '?';
  for (const auto& [key, value] : parameters) {
    url += fmt::format("{}{}={}", separator, key, PercentEncoded(value));
    separator = '&';
  }
  return url;
}

absl::StatusOr<std::string> HttpClient::Get(std::string_view path, const Parameters& parameters) const {
  Exchange exchange(UrlOf(path, parameters));
  exchange.Set(CURLOPT_TIMEOUT_MS, kTimeoutMs);
  if (is_cancelled_) {
    exchange.Set(CURLOPT_NOPROGRESS, 0L);
    exchange.Set(CURLOPT_XFERINFODATA, &is_cancelled_);
    exchange.Set(CURLOPT_XFERINFOFUNCTION, StopIfCancelled);
  }
  return exchange.Perform(server_, path);
}

absl::StatusOr<std::string> HttpClient::Delete(std::string_view path, const Parameters& parameters) const {
  Exchange exchange(UrlOf(path, parameters));
  exchange.Set(CURLOPT_TIMEOUT_MS, kTimeoutMs);
  exchange.Set(CURLOPT_CUSTOMREQUEST, "DELETE");
  return exchange.Perform(server_, path);
}

absl::StatusOr<std::string> HttpClient::PutFrom(std::string_view path, const Parameters& parameters,
                                                const std::function<size_t(uint64_t, char*, size_t)>& read,
                                                uint64_t bytes) const {
  absl::StatusOr<std::string> answer;
  for (int i = 0; i < kBusyTriesMax; ++i) {
    if (i > 0) std::this_thread::sleep_for(kBusyWait);
    Source source{read, 0};
    Exchange exchange(UrlOf(path, parameters));
    exchange.Set(CURLOPT_UPLOAD, 1L);
    exchange.Set(CURLOPT_READFUNCTION, ReadSource);
    exchange.Set(CURLOPT_READDATA, &source);
    exchange.Set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(bytes));
    exchange.Set(CURLOPT_LOW_SPEED_TIME, kUploadStallS);  // the reducer needs some time to read a large file
    exchange.Set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    answer = exchange.Perform(server_, path);
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
