#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace tributary::cli {

// Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD as messages instead of interruptions, for as long as it lives. One
// in a process, made by its only thread. Children get the old mask back (old_mask()).
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  struct Signal {
    int number = 0;
    bool from_terminal = false;  // every process in the foreground group got it too
  };
  // The next signal, waiting at most that long.
  std::optional<Signal> Wait(int timeout_ms);

  const sigset_t& old_mask() const { return old_mask_; }

 private:
  sigset_t old_mask_;
  Fd fd_;
};

}  // namespace tributary::cli
