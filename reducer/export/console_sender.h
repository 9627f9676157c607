#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "otlp/profiles_text.h"
#include "otlp/sender.h"
#include "reducer/export/event_sender.h"

namespace tributary {

// Prints samples and process events as text to a file descriptor that the caller owns. If the reader of the output has
// exited or the disk is full, Send returns an error. If the reader is only slow, Send waits for it, and returns an
// error after `timeout_ns`. All errors have may_retry = true.
class ConsoleSender : public otlp::ProfilesSender, public EventSender {
 public:
  ConsoleSender(int fd, otlp::TextOptions options) : fd_(fd), options_(std::move(options)) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override;
  otlp::SendResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity& identity,
                              int64_t timeout_ns) override;
  void Cancel() override { cancelled_ = true; }

 private:
  otlp::SendResult Print(int64_t timeout_ns);

  const int fd_;
  const otlp::TextOptions options_;
  std::atomic<bool> cancelled_{false};
  std::string rest_;  // the unprinted rest of a request that was cut short; only this rest is printed when that request
                      // is sent again
};

}  // namespace tributary
