#pragma once

#include <cstdint>
#include <string>

namespace tributary {

// Returns the name of a Linux signal: "SIGSEGV", "SIGRTMIN+3"; "signal 77" for a number without a name, "" for 0. The
// numbers are the same on all architectures that Tributary supports (signal(7)). glibc's sigabbrev_np is too new for
// Debian 11.
std::string SignalName(uint8_t signal);

// Returns true for signals whose default action dumps core (signal(7)), except SIGQUIT, which a user sends from the
// terminal: the program has a bug, or has exceeded a limit of its own.
bool IsCrashSignal(uint8_t signal);

}  // namespace tributary
