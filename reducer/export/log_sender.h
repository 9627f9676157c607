#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "otlp/otlp_logs_sender.h"
#include "reducer/export/event_sender.h"
#include "reducer/metadata/resource_joiner.h"

namespace tributary {

// Sends samples and process events as OTLP logs.
class LogSender : public otlp::ProfilesSender, public EventSender {
 public:
  // A further request of a call begins only if the receiver has this time to answer.
  static constexpr int64_t kAnswerNs = kNsPerSecond;

  // `joiner` and `clock` must outlive the sender. Without a joiner, events have only the store's data.
  LogSender(std::unique_ptr<otlp::Transport> transport, otlp::LogRecords records, const ResourceJoiner* joiner,
            const Clock& clock, size_t event_bytes_max)
      : logs_(std::move(transport), records), joiner_(joiner), clock_(clock), event_bytes_max_(event_bytes_max) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    return logs_.Send(request, identity, timeout_ns);
  }
  // Sends one or more requests of about `event_bytes_max` bytes, within `timeout_ns` together. If the call fails and is
  // repeated, sends only those requests again that had no answer.
  EventResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                         int64_t timeout_ns) override;
  void Cancel() override { logs_.Cancel(); }

 private:
  otlp::OtlpLogsSender logs_;
  const ResourceJoiner* const joiner_;
  const Clock& clock_;
  const size_t event_bytes_max_;
  otlp::RequestIdentity unfinished_;  // of the last call, if it must be repeated
  size_t answered_ = 0;               // the first events of that call: the receiver has accepted or refused them
  EventResult answers_;               // about these events
};

}  // namespace tributary
