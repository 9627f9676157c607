#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace tributary::cli {

// Receives SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD as messages instead of interruptions, during its lifetime. A
// process may have only one, created by its only thread. Children get the old mask back (old_mask()).
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  struct Signal {
    int number = 0;
    bool from_terminal = false;  // every process in the foreground group received it too
  };
  // Returns the next signal. Waits at most `timeout_ms` for it.
  std::optional<Signal> Wait(int timeout_ms);

  const sigset_t& old_mask() const { return old_mask_; }

 private:
  sigset_t old_mask_;
  Fd fd_;
};

}  // namespace tributary::cli
