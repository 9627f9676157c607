#include "base/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/status.h"

namespace tributary {
namespace {

bool EndedWell(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  Finish();
  pid_ = std::exchange(other.pid_, -1);
  socket_ = std::move(other.socket_);
  return *this;
}

absl::StatusOr<ChildProcess> ChildProcess::SpawnSelf(Options options) {
  // Duplicates every descriptor first, because one of them may have a number that another one must get.
  std::vector<Fd> aside(options.descriptors.size());
  for (size_t i = 0; i < aside.size(); ++i) {
    TRIBUTARY_CHECK(options.descriptors[i].to < kHandedEnd);
    if (options.descriptors[i].from < 0) continue;
    aside[i].Reset(fcntl(options.descriptors[i].from, F_DUPFD_CLOEXEC, kHandedEnd));
    if (!aside[i].valid()) return ErrnoStatus("dup", "a file for " + options.description, errno);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (size_t i = 0; i < aside.size(); ++i) {
    if (aside[i].valid()) posix_spawn_file_actions_adddup2(&actions, aside[i].get(), options.descriptors[i].to);
  }
  std::vector<char*> arguments;
  for (std::string& argument : options.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  char* const environment[] = {nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus("start", options.description, error);
  return ChildProcess(pid);
}

absl::StatusOr<ChildProcess> ChildProcess::SpawnSelf(const char* argument) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoStatus("socketpair", "for a child process", errno);
  }
  Fd ours(pair[0]), theirs(pair[1]);
  ASSIGN_OR_RETURN(ChildProcess child, SpawnSelf({.description = "a child process",
                                                  .arguments = {program_invocation_short_name, argument},
                                                  .descriptors = {{theirs.get(), kSocket}}}));
  child.socket_ = std::move(ours);
  return child;
}

void ChildProcess::Finish() {
  if (socket_.valid()) {
    socket_.Reset();
    for (int waited_ms = 0; running() && !Reap() && waited_ms < kFinishMs; ++waited_ms) usleep(1000);
  }
  if (running()) End();
}

int ChildProcess::End() {
  TRIBUTARY_CHECK(running());  // kill takes -1 for all processes
  socket_.Reset();
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

bool ChildProcess::Stop() { return running() && !EndedWell(End()); }

std::optional<bool> ChildProcess::Reap() {
  int status = 0;
  if (!running() || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  socket_.Reset();
  return EndedWell(status);
}

}  // namespace tributary
