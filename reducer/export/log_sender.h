#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "otlp/otlp_logs_sender.h"
#include "reducer/export/event_sender.h"
#include "reducer/metadata/resource_joiner.h"

namespace tributary {

// Sends samples and process events as OTLP logs.
class LogSender : public otlp::ProfilesSender, public EventSender {
 public:
  // A larger logs request of process events is divided.
  static constexpr size_t kEventBytesMax = 2'500'000;

  // `joiner` must outlive the sender; null: events have only the store's data.
  LogSender(std::unique_ptr<otlp::Transport> transport, otlp::LogRecords records, const ResourceJoiner* joiner,
            size_t event_bytes_max = kEventBytesMax)
      : logs_(std::move(transport), records), joiner_(joiner), event_bytes_max_(event_bytes_max) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    return logs_.Send(request, identity, timeout_ns);
  }
  // Sends one or more requests, within `timeout_ns` together. If the call fails and is repeated with the same identity,
  // sends only those requests again that were not accepted.
  otlp::SendResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                              int64_t timeout_ns) override;
  void Cancel() override { logs_.Cancel(); }

 private:
  otlp::OtlpLogsSender logs_;
  const ResourceJoiner* const joiner_;
  const size_t event_bytes_max_;
  otlp::RequestIdentity unfinished_;  // of the last call, if it failed
  size_t accepted_ = 0;               // events of that call
};

}  // namespace tributary
