#pragma once

#include <memory>
#include <utility>

#include "otlp/generation.h"
#include "otlp/sender.h"

namespace tributary::otlp {

// Sends OTLP profiles over a transport, in one generation, and reads how many of them the receiver rejected.
class OtlpProfilesSender : public ProfilesSender {
 public:
  explicit OtlpProfilesSender(std::unique_ptr<Transport> transport, Generation generation = Generation::kNewest)
      : transport_(std::move(transport)), generation_(generation) {}

  // The result's message has at most kMessageBytesMax bytes.
  SendResult Send(const ProfilesRequest& request, const RequestIdentity& identity, int64_t timeout_ns) override;
  SendResult SendBuilt(BuiltRequest& request, const RequestIdentity& identity, int64_t timeout_ns) override;
  void Cancel() override { transport_->Cancel(); }

 private:
  const std::unique_ptr<Transport> transport_;
  const Generation generation_;
};

}  // namespace tributary::otlp
