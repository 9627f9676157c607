#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Sends requests over HTTP/1.1 with libcurl: one POST for each request. Keeps the connection open for the next request,
// but for 5 minutes at most, so that it soon uses the new files after certificates were replaced. Follows no redirects.
// Reads at most 64 KiB of an answer's headers and 64 KiB of its body. Uses the proxies that the environment names
// (http_proxy, https_proxy, all_proxy, no_proxy), except for receivers on this machine.
class HttpTransport : public Transport {
 public:
  static constexpr size_t kAnswerBytesMax = 64u << 10;
  static constexpr size_t kAnswerHeaderBytesMax = 64u << 10;

  struct Options {
    TransportOptions common;
    std::string path;  // with its '/', for example that of the signal
    Encoding encoding = Encoding::kProtobuf;
  };

  // Returns the errors of ReadTlsFiles. ResourceExhausted: libcurl has no memory. `clock` must outlive the transport.
  static absl::StatusOr<std::unique_ptr<HttpTransport>> Make(Options options, const Clock& clock);
  ~HttpTransport() override;

  // Errors: those of ReadHttpAnswer. Without an answer: Unavailable, or DeadlineExceeded after `timeout_ns`; these may
  // be retried.
  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                  int64_t timeout_ns) override;
  void Cancel() override;

 private:
  class Impl;
  explicit HttpTransport(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::otlp
