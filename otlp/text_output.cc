#include "otlp/text_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace tributary::otlp {
namespace {

// If poll reports a pipe as writable, the pipe takes at least PIPE_BUF bytes without blocking.
constexpr size_t kWriteBytes = 4096;
constexpr int kPollMs = 100;

// Writes as much of `*rest` as fits, and removes it from `*rest`. Sets `*in_line` to whether it ends within a line.
absl::Status WriteSome(int fd, std::string_view* rest, bool* in_line) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  int polled = poll(&ready, 1, kPollMs);
  if (polled < 0 && errno != EINTR) return ErrnoStatus("poll", "console", errno);
  if (polled <= 0) return absl::OkStatus();
  ssize_t written = write(fd, rest->data(), std::min(rest->size(), kWriteBytes));
  if (written < 0) return errno == EINTR || errno == EAGAIN ? absl::OkStatus() : ErrnoStatus("write", "console", errno);
  if (written > 0) *in_line = (*rest)[static_cast<size_t>(written) - 1] != '\n';
  rest->remove_prefix(static_cast<size_t>(written));
  return absl::OkStatus();
}

}  // namespace

SendResult TextOutput::Print(const RequestIdentity& identity, const std::function<std::string()>& make,
                             int64_t timeout_ns) {
  if (rest_.empty() || cut_ != identity) {
    rest_ = (in_line_ ? "\n" : "") + make();
    cut_ = identity;
  }
  const int64_t deadline = Clock::Real().Monotonic().value + timeout_ns;
  std::string_view rest = rest_;
  SendResult result;
  while (!rest.empty() && result.status.ok()) {
    if (cancelled_) {
      result.status = absl::CancelledError("the export is stopping");
    } else if (Clock::Real().Monotonic().value >= deadline) {
      result.status = absl::DeadlineExceededError("the program that reads standard output is too slow, or has stopped");
    } else {
      result.status = WriteSome(fd_, &rest, &in_line_);
    }
  }
  rest_ = std::string(rest);
  result.may_retry = !result.status.ok();
  return result;
}

}  // namespace tributary::otlp
