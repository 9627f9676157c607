#pragma once

#include <memory>
#include <utility>

#include "otlp/profile_logs.h"
#include "otlp/sender.h"

namespace tributary::otlp {

// Sends samples and other records as OTLP logs over a transport, and reads how many records the receiver rejected.
class OtlpLogsSender : public ProfilesSender, public LogsSender {
 public:
  OtlpLogsSender(std::unique_ptr<Transport> transport, LogRecords records)
      : transport_(std::move(transport)), records_(records) {}

  // Turns the profiles into logs, and sends them in one request.
  SendResult Send(const ProfilesRequest& request, const RequestIdentity& identity, int64_t timeout_ns) override;
  SendResult SendLogs(const LogsRequest& request, int64_t timeout_ns) override;
  void Cancel() override { transport_->Cancel(); }

 private:
  const std::unique_ptr<Transport> transport_;
  const LogRecords records_;
};

}  // namespace tributary::otlp
