#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "otlp/sender.h"

namespace tributary::otlp {

// Prints texts to a file descriptor that the caller owns. If the reader of the output has exited or the disk is full,
// Print returns an error. If the reader is only slow, Print waits for it, and returns an error after `timeout_ns`. All
// errors have may_retry = true. Only one thread at a time may call Print. Any thread may call Cancel.
class TextOutput {
 public:
  explicit TextOutput(int fd) : fd_(fd) {}

  // Prints the text that `make` returns. A text that was cut short belongs to the request that is now retried: then
  // only the rest of it is printed.
  SendResult Print(const std::function<std::string()>& make, int64_t timeout_ns) {
    if (rest_.empty()) rest_ = make();
    return Print(timeout_ns);
  }
  // Makes the current call and all later calls of Print return soon, with the status Cancelled.
  void Cancel() { cancelled_ = true; }

 private:
  SendResult Print(int64_t timeout_ns);

  const int fd_;
  std::atomic<bool> cancelled_{false};
  std::string rest_;  // the unprinted rest of a text that was cut short
};

}  // namespace tributary::otlp
