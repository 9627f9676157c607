#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// A child process that runs this program's binary and does one kind of work for its parent, for example parsing in a
// sandbox (sandbox.h). Parent and child communicate over a socket, or through files that the child receives. The
// destructor ends the child (Finish). Only one thread at a time may use the object.
class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(pid_t pid, Fd socket = Fd()) : pid_(pid), socket_(std::move(socket)) {}
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Finish(); }

  // A file descriptor that the child gets. `from`: its number in this process, or -1 to pass none. `to`: its number in
  // the child, which must be below kHandedEnd.
  struct Handed {
    int from, to;
  };
  static constexpr int kHandedEnd = 16;
  struct Options {
    std::string description;             // for errors: "a child process"
    std::vector<std::string> arguments;  // argv; the first is the child's name
    std::vector<Handed> descriptors;     // in addition to descriptors that are not close-on-exec
  };
  // Starts this program's binary as a child process, without an environment and without a socket. Returns the errors of
  // ErrnoStatus (status.h).
  static absl::StatusOr<ChildProcess> SpawnSelf(Options options);
  // Starts this program's binary as a child process, with `argument` as its only argument, and with a socket to this
  // process. In the child, the socket is the descriptor kSocket.
  static constexpr int kSocket = 3;
  static absl::StatusOr<ChildProcess> SpawnSelf(const char* argument);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // -1: none

  // Closes the socket, on which a child that has no work then ends by itself. If it has not ended after kFinishMs, or
  // has no socket, kills it. So a child that was ended on purpose does not look like one that crashed.
  static constexpr int kFinishMs = 100;
  void Finish();
  // Kills the process, and waits until it has ended. Returns waitpid's status. If the process has already ended, this
  // is the status with which it ended. The caller must check running() first.
  int End();
  // Calls End if running(). Returns true if this call killed the process, or if the process had failed before. Returns
  // false if it had already ended with exit code 0, or if there is no process.
  bool Stop();
  // Returns true if the process has ended with exit code 0, and false if it has failed. In both cases, frees its pid
  // and closes its socket. Returns nullopt if the process has not ended, or if there is no process.
  std::optional<bool> Reap();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

}  // namespace tributary
