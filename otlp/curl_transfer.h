#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// A handle of libcurl, for one transfer at a time to one receiver. It has what the transports over HTTP and gRPC share:
// TLS, proxies, time limits and Cancel.
//
// libcurl reads the TLS files again for each new connection. Follows no redirects. Uses the proxies that the
// environment names (http_proxy, https_proxy, all_proxy, no_proxy), except for receivers on this machine.
//
// Only one thread at a time may use it. Any thread may use Cancel.
class CurlTransfer {
 public:
  // A connection is not used for longer, so that certificates that were replaced are soon used.
  static constexpr int64_t kConnectionAgeMaxNs = 300 * kNsPerSecond;

  // `path` begins with '/'. Returns the errors of ReadTlsFiles. ResourceExhausted: libcurl has no memory.
  static absl::StatusOr<std::unique_ptr<CurlTransfer>> Make(const TransportOptions& options, const std::string& path);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  template <typename T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(easy_.get(), option, value);
  }
  CURL* easy() const { return easy_.get(); }

  // Transfers until the end, for at most `timeout_ns`, or until Cancel. Then returns CURLE_ABORTED_BY_CALLBACK.
  CURLcode Perform(int64_t timeout_ns);
  // Returns how many bytes of the body were sent by the last Perform.
  size_t BytesUploaded() const;
  // Waits until the socket is ready for one of `events` (CURL_WAIT_…), for at most `timeout_ns`, or until Cancel.
  // Returns the events for which it is ready. Internal: waiting is not possible.
  absl::StatusOr<short> Wait(curl_socket_t socket, short events, int64_t timeout_ns);
  // Closes all connections. libcurl would keep some of them after a failed transfer, even if their other ends are gone.
  void CloseConnections();

  // Makes the current and all later calls of Perform and Wait return at once.
  void Cancel();
  bool IsCancelled() const;

  // Returns the result of a request without an answer, from the result of Perform. It may be retried.
  CallResult NoAnswer(CURLcode code) const;

 private:
  // CURL and CURLM are both `void`.
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };

  CurlTransfer();
  void SetUp(const TransportOptions& options, const std::string& path);
  void SetTls(const TlsFiles& files);
  CURLcode Run();

  bool has_begun_ = false;  // the last Perform has done something: until then, the counts of libcurl are older
  char error_[CURL_ERROR_SIZE] = "";  // curl writes to it until easy_ is destroyed
  mutable std::mutex mutex_;
  bool cancelled_ = false;                   // guarded by mutex_
  std::unique_ptr<CURLM, FreeMulti> multi_;  // owns the connections; destroyed after easy_; written under mutex_
  const std::unique_ptr<CURL, FreeEasy> easy_;
};

// Returns the result of a request without an answer: `code`, which may be retried.
CallResult NoAnswer(absl::StatusCode code, std::string_view why);

}  // namespace tributary::otlp
