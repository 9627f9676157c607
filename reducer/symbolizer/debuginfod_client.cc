#include "reducer/symbolizer/debuginfod_client.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/hex.h"
#include "base/percent.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "base/version.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

constexpr long kStallBytesPerSecond = 1024;
constexpr long kRedirectsMax = 5;

struct Cleanup {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

struct Transfer {
  int file = -1;
  uint64_t bytes = 0, bytes_max = 0;
  const std::function<bool()>* is_cancelled = nullptr;
  bool too_large = false;
  absl::Status written;
};

size_t Append(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  transfer.bytes += bytes;
  transfer.too_large = transfer.bytes > transfer.bytes_max;
  if (transfer.too_large) return 0;
  transfer.written = WriteToFile(transfer.file, {data, bytes}, "a fetched file");
  return transfer.written.ok() ? bytes : 0;
}

int Progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<Transfer*>(user)->is_cancelled)() ? 1 : 0;
}

}  // namespace

DebuginfodClient::DebuginfodClient(Options options, std::function<bool()> is_cancelled, const Clock& clock,
                                   Metrics& metrics)
    : options_(std::move(options)),
      is_cancelled_(std::move(is_cancelled)),
      clock_(clock),
      fetched_(metrics.AddCounter("tributary_symbolizer_debuginfod_fetched_total",
                                  "Files received from debuginfod servers.")),
      missing_(metrics.AddCounter("tributary_symbolizer_debuginfod_missing_total",
                                  "Requests for files that the debuginfod server did not have.")),
      failed_(metrics.AddCounter("tributary_symbolizer_debuginfod_failed_total",
                                 "Requests to debuginfod servers that failed: no answer, an incomplete answer, an HTTP "
                                 "error other than 404 and 410, or a file that is too large or could not be written.")),
      bytes_(metrics.AddCounter("tributary_symbolizer_debuginfod_bytes_total",
                                "Bytes received from debuginfod servers.")) {
  for (const std::string& url : options_.urls) servers_.push_back({.url = url, .not_before = {}, .failure = ""});
}

absl::StatusOr<Fd> DebuginfodClient::FetchDebugFile(const ExecutableId& build_id) {
  return Fetch(fmt::format("/buildid/{}/debuginfo", ToHex(build_id.bytes())));
}

absl::StatusOr<std::string> DebuginfodClient::FetchSource(const ExecutableId& build_id, std::string_view path) {
  ASSIGN_OR_RETURN(const Fd file, Fetch(fmt::format("/buildid/{}/source{}", ToHex(build_id.bytes()),
                                                    PercentEncoded(path, IsUrlPath))));
  return ReadWholeFile(file.get(), options_.file_bytes_max, "a fetched source file");
}

absl::StatusOr<Fd> DebuginfodClient::Fetch(const std::string& url_path) {
  absl::Status status = Error(absl::StatusCode::kNotFound, "no debuginfod server has the file");
  for (Server& server : servers_) {
    if (clock_.Monotonic() < server.not_before) {
      status = Error(absl::StatusCode::kUnavailable, server.failure);
      continue;
    }
    absl::StatusOr<Fd> file = FetchFrom(server, url_path);
    if (file.ok()) return file;
    if (absl::IsNotFound(file.status())) continue;
    status = WithContext(file.status(), server.url);
    if (!absl::IsUnavailable(status)) continue;
    server.failure = Message(status);
    server.not_before.value = clock_.Monotonic().value + options_.server_retry_ns;
  }
  return status;
}

absl::StatusOr<Fd> DebuginfodClient::FetchFrom(const Server& server, const std::string& url_path) {
  Fd file(open(options_.temporary_directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus("make a temporary file in", options_.temporary_directory, errno);
  const std::unique_ptr<CURL, Cleanup> curl(curl_easy_init());
  if (curl == nullptr) return Error(absl::StatusCode::kResourceExhausted, "no memory for libcurl");
  Transfer transfer{.file = file.get(), .bytes_max = options_.file_bytes_max, .is_cancelled = &is_cancelled_};
  const std::string url = server.url + url_path;
  auto set = [&](CURLoption option, auto value) { curl_easy_setopt(curl.get(), option, value); };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  if (const std::string authorities = SystemCaFile(); !authorities.empty()) set(CURLOPT_CAINFO, authorities.c_str());
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kRedirectsMax);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ACCEPT_ENCODING, "");  // any encoding that curl can undo
  set(CURLOPT_USERAGENT, "tributary/" TRIBUTARY_VERSION);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout_ms));
  set(CURLOPT_TIMEOUT, static_cast<long>(options_.total_timeout_s));
  set(CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout_s));
  set(CURLOPT_WRITEFUNCTION, Append);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, Progress);
  set(CURLOPT_XFERINFODATA, &transfer);
  const CURLcode result = curl_easy_perform(curl.get());
  long code = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  bytes_.Add(transfer.bytes);
  if (result == CURLE_OK) {
    fetched_.Add();
    return file;
  }
  if (result == CURLE_HTTP_RETURNED_ERROR && (code == 404 || code == 410)) {
    missing_.Add();
    return Error(absl::StatusCode::kNotFound, "not found");
  }
  failed_.Add();
  if (transfer.too_large) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("the file is larger than the limit of {} bytes", transfer.bytes_max));
  }
  RETURN_IF_ERROR(transfer.written);
  return Error(absl::StatusCode::kUnavailable, result == CURLE_HTTP_RETURNED_ERROR
                                                   ? fmt::format("the server answered with HTTP status {}", code)
                                                   : std::string(curl_easy_strerror(result)));
}

}  // namespace tributary
