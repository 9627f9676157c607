#pragma once

#include <csignal>
#include <optional>

#include "base/fd.h"

namespace tributary::cli {

// Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD from construction until destruction; Wait returns these signals
// instead. A process may have only one SignalInbox. The caller must create it before it starts other threads. Start
// child processes with old_mask(), so that they do not inherit the blocked signals.
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
  // Returns the next signal, or nullopt if none arrives within `timeout_ms`.
  std::optional<Signal> Wait(int timeout_ms);

  const sigset_t& old_mask() const { return old_mask_; }

 private:
  sigset_t old_mask_;
  Fd fd_;
};

}  // namespace tributary::cli
