#include "cli/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

#include "base/log.h"
#include "base/status.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

constexpr size_t kBodyBytesMax = 256u << 20;
constexpr long kConnectTimeoutMs = 5'000;
constexpr long kTimeoutMs = 120'000;

struct Cleanup {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

size_t AppendBody(char* data, size_t size, size_t count, void* body) {
  auto* out = static_cast<std::string*>(body);
  if (out->size() + size * count > kBodyBytesMax) return 0;  // makes curl give up
  out->append(data, size * count);
  return size * count;
}

std::string PercentEncoded(std::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += fmt::format("%{:02X}", c);
    }
  }
  return out;
}

absl::Status ServerError(std::string_view url, long code, const std::string& body) {
  std::string error = ParseErrorBody(body);
  if (error.empty()) error = "no reason given; is this a reducer?";
  auto status = code == 400   ? absl::StatusCode::kInvalidArgument
                : code == 404 ? absl::StatusCode::kNotFound
                              : absl::StatusCode::kInternal;
  return Error(status, fmt::format("{}: HTTP {}: {}", url, code, EscapeForDisplay(error)));
}

}  // namespace

HttpClient::HttpClient(std::string server) : server_(std::move(server)) {
  while (server_.ends_with('/')) server_.pop_back();
  if (server_.find("://") == std::string::npos) server_ = "http://" + server_;
}

absl::StatusOr<std::string> HttpClient::Get(std::string_view path, const Parameters& parameters) const {
  std::string url = server_ + std::string(path);
  char separator = '?';
  for (const auto& [key, value] : parameters) {
    url += fmt::format("{}{}={}", separator, key, PercentEncoded(value));
    separator = '&';
  }
  std::unique_ptr<CURL, Cleanup> curl(curl_easy_init());
  TRIBUTARY_CHECK(curl != nullptr);
  std::string body;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, kTimeoutMs);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_ACCEPT_ENCODING, "");  // whatever curl can undo
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, AppendBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  // A reducer on this machine is not behind a proxy, whatever the environment says.
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  CURLcode result = curl_easy_perform(curl.get());
  if (result == CURLE_WRITE_ERROR && body.size() > kBodyBytesMax / 2) {
    return Error(absl::StatusCode::kResourceExhausted, fmt::format("{}: answer over {} MiB", url, kBodyBytesMax >> 20));
  }
  if (result != CURLE_OK) {
    return Error(absl::StatusCode::kUnavailable,
                 fmt::format("no answer from a reducer at {} ({}): start one, or name another with --server", server_,
                             curl_easy_strerror(result)));
  }
  long code = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  if (code != 200) return ServerError(server_ + std::string(path), code, body);
  return body;
}

}  // namespace tributary::cli
