#pragma once

#include <memory>
#include <utility>

#include "otlp/sender.h"

namespace tributary::otlp {

// Sends OTLP profiles over a transport, and reads how many of them the receiver rejected.
class OtlpSender : public ProfilesSender {
 public:
  // A longer message of a receiver is cut, because it goes to the log.
  static constexpr size_t kMessageBytesMax = 1024;

  explicit OtlpSender(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  SendResult Send(const ProfilesRequest& request, int64_t timeout_ns) override;
  void Cancel() override { transport_->Cancel(); }

 private:
  const std::unique_ptr<Transport> transport_;
};

}  // namespace tributary::otlp
