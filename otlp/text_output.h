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

  // Prints the text that `make` returns for the request with this identity. If the text of this request was cut short,
  // prints only the rest of it. If the text of another request was cut short, ends its line first. That request will be
  // printed again as a whole.
  SendResult Print(const RequestIdentity& identity, const std::function<std::string()>& make, int64_t timeout_ns);
  // Makes the current call and all later calls of Print return soon, with the status Cancelled.
  void Cancel() { cancelled_ = true; }

 private:
  const int fd_;
  std::atomic<bool> cancelled_{false};
  std::string rest_;      // the unprinted rest of a text that was cut short
  RequestIdentity cut_;   // of this text
  bool in_line_ = false;  // the last byte that was printed did not end a line
};

}  // namespace tributary::otlp
