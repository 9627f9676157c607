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
// destructor ends the child. Use it on any thread, but on one at a time.
class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(pid_t pid, Fd socket = Fd()) : pid_(pid), socket_(std::move(socket)) {}
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Stop(); }

  // A descriptor for the child. `from`: its number in this process; -1: none. `to`: its number in the child, below
  // kHandedEnd.
  struct Handed {
    int from, to;
  };
  static constexpr int kHandedEnd = 16;
  struct Options {
    std::string description;             // for errors: "a child process"
    std::vector<std::string> arguments;  // argv; the first is the child's name
    std::vector<Handed> descriptors;     // in addition to descriptors that are not close-on-exec
  };
  // Starts this binary again, without an environment and without a socket. Errors: those of ErrnoStatus.
  static absl::StatusOr<ChildProcess> SpawnSelf(Options options);
  // Starts this binary again with `argument` as its only argument, and with a socket. The child has its end of the
  // socket as descriptor kSocket.
  static constexpr int kSocket = 3;
  static absl::StatusOr<ChildProcess> SpawnSelf(const char* argument);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // -1: none

  // Kills the process, which must be running, and waits for its end. Returns waitpid's status. If the process is
  // already ending, the signal does not change its status.
  int End();
  // Calls End if the process was neither stopped nor reaped yet. Returns true if it was killed by this call or had
  // failed, and false if it had ended by itself with exit code 0.
  bool Stop();
  // Returns true if the process ended by itself and with exit code 0, and false if it failed. Cleans up after it.
  // Returns nullopt if it still runs or there is none.
  std::optional<bool> Reap();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

}  // namespace tributary
