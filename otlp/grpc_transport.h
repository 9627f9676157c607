#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Sends requests over gRPC: one unary call for each request. Uses one gRPC channel, which connects when it is needed.
// After a failure, it waits at most 5 s before it connects again. gRPC starts threads of its own. The TLS files are
// read once, by Make.
class GrpcTransport : public Transport {
 public:
  // Returns the errors of ReadTlsFiles.
  static absl::StatusOr<std::unique_ptr<GrpcTransport>> Make(const TransportOptions& options, const Signal& signal);
  ~GrpcTransport() override;

  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                  int64_t timeout_ns) override;
  void Cancel() override;

 private:
  struct Impl;
  explicit GrpcTransport(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::otlp
