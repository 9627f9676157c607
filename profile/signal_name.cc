#include "profile/signal_name.h"

#include <fmt/format.h>

#include <csignal>
#include <iterator>
#include <string_view>

namespace tributary {
namespace {

constexpr std::string_view kNames[] = {"",         "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",  "SIGTRAP",   "SIGABRT",
                                       "SIGBUS",   "SIGFPE",  "SIGKILL",   "SIGUSR1", "SIGSEGV", "SIGUSR2",   "SIGPIPE",
                                       "SIGALRM",  "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP",   "SIGTSTP",
                                       "SIGTTIN",  "SIGTTOU", "SIGURG",    "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF",
                                       "SIGWINCH", "SIGIO",   "SIGPWR",    "SIGSYS"};
constexpr uint8_t kRealTimeMin = 34, kRealTimeMax = 64;  // glibc keeps 32 and 33 for itself

}  // namespace

std::string SignalName(uint8_t signal) {
  if (signal < std::size(kNames)) return std::string(kNames[signal]);
  if (signal == kRealTimeMin) return "SIGRTMIN";
  if (signal > kRealTimeMin && signal <= kRealTimeMax) return fmt::format("SIGRTMIN+{}", signal - kRealTimeMin);
  return fmt::format("signal {}", signal);
}

bool IsCrashSignal(uint8_t signal) {
  switch (signal) {
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGXCPU:
    case SIGXFSZ:
    case SIGSYS:
      return true;
    default:
      return false;
  }
}

}  // namespace tributary
