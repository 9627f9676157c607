#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "otlp/gzip.h"
#include "otlp/http2_post.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Sends requests over gRPC: one unary call for each request. A unary call is one POST over HTTP/2 (http2_post.h), so
// this needs no gRPC library. Source: "gRPC over HTTP2" (doc/PROTOCOL-HTTP2.md in the repository of gRPC).
class GrpcTransport : public Transport {
 public:
  // Returns the errors of Http2Post::Make.
  static absl::StatusOr<std::unique_ptr<GrpcTransport>> Make(const TransportOptions& options, const Signal& signal);

  // Errors: those of ReadGrpcAnswer. Without an answer: those of Http2Post::Send.
  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                  int64_t timeout_ns) override;
  CallResult CallEncoded(EncodedRequest& request, google::protobuf::Message* response, int64_t timeout_ns) override;
  void Cancel() override { post_->Cancel(); }

 private:
  GrpcTransport(std::unique_ptr<Http2Post> post, bool gzip) : post_(std::move(post)), gzip_(gzip) {}

  // `append` appends the request in protobuf's wire format.
  CallResult CallWith(absl::FunctionRef<void(std::string*)> append, google::protobuf::Message* response,
                      int64_t timeout_ns);

  const std::unique_ptr<Http2Post> post_;
  const bool gzip_;
  GzipCompressor compressor_;
};

}  // namespace tributary::otlp
