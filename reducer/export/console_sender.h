#pragma once

#include <cstdint>
#include <utility>

#include "otlp/profiles_text.h"
#include "otlp/text_output.h"
#include "reducer/export/record_sender.h"

namespace tributary {

// Prints samples, process events, losses and rollouts as text to a file descriptor that the caller owns. Its errors are
// those of otlp::TextOutput.
class ConsoleSender : public otlp::ProfilesSender, public RecordSender {
 public:
  ConsoleSender(int fd, otlp::TextOptions options) : options_(std::move(options)), output_(fd) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override;
  RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) override;
  RecordResult SendLosses(std::span<const store::LossRecord> losses, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) override;
  RecordResult SendRollouts(std::span<const Rollout> rollouts, const otlp::RequestIdentity& identity,
                            int64_t timeout_ns) override;
  void Cancel() override { output_.Cancel(); }

 private:
  const otlp::TextOptions options_;
  otlp::TextOutput output_;
  uint64_t left_out_samples_ = 0;  // of the request that is being printed
};

}  // namespace tributary
