#include "reducer/export/console_sender.h"

#include "reducer/export/records_text.h"

namespace tributary {

RecordResult ConsoleSender::SendEvents(std::span<const store::EventRecord> events,
                                       const otlp::RequestIdentity& identity, int64_t timeout_ns) {
  return {output().Print(identity, [&] { return FormatEvents(events); }, timeout_ns), 0};
}

RecordResult ConsoleSender::SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                                       int64_t timeout_ns) {
  return {output().Print(identity, [&] { return FormatLosses(losses); }, timeout_ns), 0};
}

RecordResult ConsoleSender::SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                                         int64_t timeout_ns) {
  return {output().Print(identity, [&] { return FormatRollouts(rollouts); }, timeout_ns), 0};
}

}  // namespace tributary
