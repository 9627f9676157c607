#include "base/child_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "base/status.h"

namespace tributary {
namespace {

bool EndedWell(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  Stop();
  pid_ = std::exchange(other.pid_, -1);
  socket_ = std::move(other.socket_);
  return *this;
}

absl::StatusOr<ChildProcess> ChildProcess::SpawnSelf(const char* argument) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoStatus("socketpair", "for a child process", errno);
  }
  Fd ours(pair[0]), theirs(pair[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // dup2 onto itself clears close-on-exec as well.
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kSocket);
  std::string name = program_invocation_short_name, only = argument;
  char* const arguments[] = {name.data(), only.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = -1;
  int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus("start", "a child process", error);
  return ChildProcess(pid, std::move(ours));
}

bool ChildProcess::Stop() {
  if (!running()) return false;
  socket_.Reset();
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return !EndedWell(status);
}

std::optional<bool> ChildProcess::Reap() {
  int status = 0;
  if (!running() || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  socket_.Reset();
  return EndedWell(status);
}

}  // namespace tributary
