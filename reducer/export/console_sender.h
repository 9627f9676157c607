#pragma once

#include <cstdint>
#include <utility>

#include "otlp/text_sender.h"
#include "reducer/export/record_sender.h"

namespace tributary {

// Prints samples, process events, losses and rollouts as text to a file descriptor that the caller owns. Its errors are
// those of otlp::TextOutput.
class ConsoleSender : public otlp::TextSender, public RecordSender {
 public:
  ConsoleSender(int fd, otlp::TextOptions options) : otlp::TextSender(fd, std::move(options)) {}

  RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) override;
  RecordResult SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) override;
  RecordResult SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                            int64_t timeout_ns) override;
};

}  // namespace tributary
