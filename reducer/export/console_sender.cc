#include "reducer/export/console_sender.h"

#include "reducer/export/records_text.h"

namespace tributary {

otlp::SendResult ConsoleSender::Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                                     int64_t timeout_ns) {
  otlp::SendResult result = output_.Print(
      identity,
      [&] {
        otlp::RequestText made = otlp::FormatRequest(request, options_);
        left_out_samples_ = made.left_out_samples;
        return std::move(made.text);
      },
      timeout_ns);
  if (result.status.ok() && left_out_samples_ > 0) {
    result.left_out_samples = left_out_samples_;
    result.message = "the text of the request is too large: samples are left out";
  }
  return result;
}

RecordResult ConsoleSender::SendEvents(std::span<const store::EventRecord> events,
                                       const otlp::RequestIdentity& identity, int64_t timeout_ns) {
  return {output_.Print(identity, [&] { return FormatEvents(events); }, timeout_ns), 0};
}

RecordResult ConsoleSender::SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                                       int64_t timeout_ns) {
  return {output_.Print(identity, [&] { return FormatLosses(losses); }, timeout_ns), 0};
}

RecordResult ConsoleSender::SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                                         int64_t timeout_ns) {
  return {output_.Print(identity, [&] { return FormatRollouts(rollouts); }, timeout_ns), 0};
}

}  // namespace tributary
