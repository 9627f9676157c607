#pragma once

#include <atomic>

#include "otlp/profiles_text.h"
#include "otlp/sender.h"

namespace tributary {

// Prints requests to a file descriptor that it borrows, one whole request at a time. If the reader is gone or the disk
// is full, Send returns an error that may be retried. If the reader is only slow, Send waits until the time-out.
class ConsoleSender : public otlp::ProfilesSender {
 public:
  ConsoleSender(int fd, otlp::TextLayout layout) : fd_(fd), layout_(layout) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, int64_t timeout_ns) override;
  void Cancel() override { cancelled_ = true; }

 private:
  const int fd_;
  const otlp::TextLayout layout_;
  std::atomic<bool> cancelled_{false};
  std::string rest_;  // the unprinted rest of a request that was cut short; only this rest is printed when that request
                      // is sent again
};

}  // namespace tributary
