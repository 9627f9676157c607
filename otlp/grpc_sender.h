#pragma once

#include <memory>
#include <string>

#include "otlp/sender.h"

namespace tributary::otlp {

// Sends OTLP profiles over gRPC: one unary Export for each request, gzip-compressed. Uses one channel, which connects
// by itself. After a failure it waits at most 5 s before it connects again. Costs gRPC's own threads.
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
