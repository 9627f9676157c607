#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "otlp/otlp_logs_sender.h"
#include "otlp/record_logs.h"
#include "reducer/export/record_sender.h"
#include "reducer/metadata/resource_joiner.h"

namespace tributary {

// Sends samples, process events, losses and rollouts as OTLP logs.
class LogSender : public otlp::ProfilesSender, public RecordSender {
 public:
  // A further request of a call begins only if the receiver has this time to answer.
  static constexpr int64_t kAnswerNs = kNsPerSecond;

  // `joiner` and `clock` must outlive the sender. Without a joiner, records have only the store's data.
  LogSender(std::unique_ptr<otlp::Transport> transport, otlp::LogRecords records, const ResourceJoiner* joiner,
            const Clock& clock, size_t record_bytes_max)
      : logs_(std::move(transport), records), joiner_(joiner), clock_(clock), record_bytes_max_(record_bytes_max) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    return logs_.Send(request, identity, timeout_ns);
  }
  bool joins_events() const override { return joiner_ != nullptr; }
  // Send one or more requests of about `record_bytes_max` bytes, within `timeout_ns` together. If the call fails and is
  // repeated, only those requests are sent again that had no answer.
  RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) override;
  RecordResult SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) override;
  RecordResult SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                            int64_t timeout_ns) override;
  void Cancel() override { logs_.Cancel(); }

 private:
  using AddRecord = absl::FunctionRef<void(size_t index, otlp::RecordLogs* logs)>;
  RecordResult SendRecords(size_t count, AddRecord add, const otlp::RequestIdentity& identity, int64_t timeout_ns);

  otlp::OtlpLogsSender logs_;
  const ResourceJoiner* const joiner_;
  const Clock& clock_;
  const size_t record_bytes_max_;
  otlp::RequestIdentity unfinished_;  // of the last call, if it must be repeated
  size_t answered_ = 0;               // the first records of that call: the receiver has accepted or refused them
  RecordResult answers_;              // about these records
};

}  // namespace tributary
