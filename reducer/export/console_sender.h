#pragma once

#include <atomic>

#include "otlp/profiles_text.h"
#include "otlp/sender.h"

namespace tributary {

// Prints requests to a file descriptor that it borrows, one whole request at a time. A reader that is gone or a full
// disk is an error that is retried. Send waits for a reader that only stalls, until the time-out.
class ConsoleSender : public otlp::ProfilesSender {
 public:
  ConsoleSender(int fd, otlp::TextLayout layout) : fd_(fd), layout_(layout) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, int64_t timeout_ns) override;
  void Cancel() override { cancelled_ = true; }

 private:
  const int fd_;
  const otlp::TextLayout layout_;
  std::atomic<bool> cancelled_{false};
  std::string rest_;  // of a request that was cut short: printed first, in place of that request when it is sent again
};

}  // namespace tributary
