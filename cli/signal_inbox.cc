#include "cli/signal_inbox.h"

#include <poll.h>
#include <sys/signalfd.h>

#include "base/status.h"

namespace tributary::cli {

SignalInbox::SignalInbox() {
  sigset_t mask;
  sigemptyset(&mask);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&mask, number);
  TRIBUTARY_CHECK(sigprocmask(SIG_BLOCK, &mask, &old_mask_) == 0);
  fd_.Reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  TRIBUTARY_CHECK(fd_.valid());
}

SignalInbox::~SignalInbox() { sigprocmask(SIG_SETMASK, &old_mask_, nullptr); }

std::optional<SignalInbox::Signal> SignalInbox::Wait(int timeout_ms) {
  struct pollfd waiting = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
  struct signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

}  // namespace tributary::cli
