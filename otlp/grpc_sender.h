#pragma once

#include <memory>
#include <string>

#include "otlp/sender.h"

namespace tributary::otlp {

// Sends OTLP profiles over gRPC: one unary Export call for each request, compressed with gzip. Uses one gRPC channel,
// which connects when it is needed. After a failure, it waits at most 5 s before it connects again. gRPC starts threads
// of its own.
class GrpcSender : public ProfilesSender {
 public:
  struct Options {
    std::string target;  // "host:port"
    bool tls = false;    // server checked against the system's certificate authorities
    std::string version;
  };
  explicit GrpcSender(const Options& options);
  ~GrpcSender() override;

  SendResult Send(const ProfilesRequest& request, int64_t timeout_ns) override;
  void Cancel() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::otlp
