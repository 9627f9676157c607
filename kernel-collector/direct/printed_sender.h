#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "otlp/sender.h"

namespace tributary {

// Prints each request once, and sends it. A request in the spool of an earlier process may be printed again, because
// this process does not know what was printed. A request that cannot be printed is sent all the same: its samples count
// as unprinted, not as lost. A slow reader of the output delays a request by at most a second. Only the time that
// printing took is missing for sending.
class PrintedSender : public otlp::ProfilesSender {
 public:
  static constexpr int64_t kPrintNsMax = kNsPerSecond;

  // `clock` and `metrics` must outlive this object.
  PrintedSender(std::unique_ptr<otlp::ProfilesSender> printer, std::unique_ptr<otlp::ProfilesSender> sender,
                const Clock& clock, Metrics& metrics);

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override;
  void Cancel() override;

 private:
  void Print(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity, int64_t timeout_ns);

  const std::unique_ptr<otlp::ProfilesSender> printer_, sender_;
  const Clock& clock_;
  std::optional<otlp::RequestIdentity> printed_;  // the request before, or this one if it is sent again
  LogLimit log_{30 * kNsPerSecond};
  Counter& unprinted_;
};

}  // namespace tributary
