#pragma once

#include <atomic>

#include "otlp/profiles_text.h"
#include "otlp/sender.h"

namespace tributary {

// Prints requests as text to a file descriptor that the caller owns. If the reader of the output has exited or the disk
// is full, Send returns an error. If the reader is only slow, Send waits for it, and returns an error after
// `timeout_ns`. All errors have may_retry = true.
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
