#include "base/service_notifier.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

namespace tributary {
namespace {

std::string TakeVariable(const char* name) {
  const char* value = getenv(name);
  std::string text = value != nullptr ? value : "";
  unsetenv(name);
  return text;
}

// Returns 0 if `text` is not a number.
int64_t Number(std::string_view text) { return ParseNumber<int64_t>(text).value_or(0); }

// Returns the status as one line.
std::string StatusLine(std::string_view status) { return "STATUS=" + EscapeForDisplay(status) + "\n"; }

}  // namespace

ServiceNotifier ServiceNotifier::TakeFromEnvironment() {
  const std::string name = TakeVariable("NOTIFY_SOCKET");
  const std::string watchdog_us = TakeVariable("WATCHDOG_USEC"), watchdog_pid = TakeVariable("WATCHDOG_PID");
  ServiceNotifier notifier;
  if (name.empty()) return notifier;
  if ((name[0] != '/' && name[0] != '@') || name.size() >= sizeof(notifier.address_.sun_path)) {
    LogWarning(
        "the service manager is not notified: NOTIFY_SOCKET must be an absolute path or @ and an abstract socket name, "
        "and at most 107 bytes long socket={}",
        name);
    return notifier;
  }
  notifier.address_.sun_family = AF_UNIX;
  name.copy(notifier.address_.sun_path, name.size());
  if (name[0] == '@') notifier.address_.sun_path[0] = '\0';
  notifier.address_size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  notifier.socket_.Reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const timeval patience = {.tv_sec = 1, .tv_usec = 0};
  setsockopt(notifier.socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const bool is_ours = watchdog_pid.empty() || Number(watchdog_pid) == getpid();
  if (is_ours && Number(watchdog_us) > 0) notifier.watchdog_ns_ = Number(watchdog_us) * kNsPerUs;
  return notifier;
}

void ServiceNotifier::Send(const std::string& message) {
  if (!socket_.valid()) return;
  const auto* address = reinterpret_cast<const sockaddr*>(&address_);
  if (sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL, address, address_size_) >= 0) return;
  const int error = errno;
  if (!failed_->exchange(true)) {
    LogWarning("the service manager cannot be notified cause=\"{}\"",
               Message(ErrnoStatus("send", "NOTIFY_SOCKET", error)));
  }
}

void ServiceNotifier::Ready(std::string_view status) { Send("READY=1\n" + StatusLine(status)); }
void ServiceNotifier::Status(std::string_view status) { Send(StatusLine(status)); }
void ServiceNotifier::Stopping() { Send("STOPPING=1\nSTATUS=stopping\n"); }
void ServiceNotifier::Ping() { Send("WATCHDOG=1\n"); }

// The time shows the manager that this answers its current signal, and not an earlier one.
void ServiceNotifier::Reloading() {
  const int64_t now_us = Clock::Real().Monotonic().value / kNsPerUs;
  Send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloading\n", now_us));
}

}  // namespace tributary
