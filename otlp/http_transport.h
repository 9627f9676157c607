#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "otlp/gzip.h"
#include "otlp/http_post.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Sends requests over HTTP/1.1: one POST for each request (http_post.h).
class HttpTransport : public Transport {
 public:
  struct Options {
    TransportOptions common;
    std::string path;  // with its '/', for example that of the signal
    Encoding encoding = Encoding::kProtobuf;
  };

  // Returns the errors of HttpPost::Make. `clock` must outlive the transport.
  static absl::StatusOr<std::unique_ptr<HttpTransport>> Make(const Options& options, const Clock& clock);

  // Errors: those of ReadHttpAnswer. Without an answer: those of HttpPost::Send.
  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                  int64_t timeout_ns) override;
  CallResult CallEncoded(EncodedRequest& request, google::protobuf::Message* response, int64_t timeout_ns) override;
  void Cancel() override { post_->Cancel(); }

 private:
  HttpTransport(std::unique_ptr<HttpPost> post, Encoding encoding, bool gzip, const Clock& clock);
  CallResult Post(std::string body, google::protobuf::Message* response, int64_t timeout_ns);

  const std::unique_ptr<HttpPost> post_;
  const Encoding encoding_;
  const bool gzip_;
  const Clock& clock_;
  GzipCompressor compressor_;
};

}  // namespace tributary::otlp
