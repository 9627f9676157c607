#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Another process of this program that does one kind of work for this one, for example parsing in a sandbox
// (sandbox.h). The two communicate over a socket, or through files that the process receives. The process ends with its
// owner. Use it on any thread, but on one at a time.
class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(pid_t pid, Fd socket = Fd()) : pid_(pid), socket_(std::move(socket)) {}
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Stop(); }

  // Our descriptor, or -1 for none, and its number in the other process, which is less than kHandedEnd.
  struct Handed {
    int from, to;
  };
  static constexpr int kHandedEnd = 16;
  struct Options {
    std::string description;             // for errors: "a child process"
    std::vector<std::string> arguments;  // the first is its name
    std::vector<Handed> descriptors;     // in addition to descriptors that are not close-on-exec
  };
  // Starts this binary again, without an environment and without a socket. Errors: those of ErrnoStatus.
  static absl::StatusOr<ChildProcess> SpawnSelf(Options options);
  // Passes `argument` alone, and a socket. The other end of the socket is kSocket in the new process.
  static constexpr int kSocket = 3;
  static absl::StatusOr<ChildProcess> SpawnSelf(const char* argument);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // -1: none

  // Kills the process, which must be running, and waits for its end. Returns waitpid's status. If the process is
  // already ending, the signal does not change its status.
  int End();
  // Calls End if the process is running. Returns true if the process had not ended by itself, or had failed.
  bool Stop();
  // Returns true if the process ended by itself and with exit code 0, and false if it failed. Cleans up after it.
  // Returns nullopt if it still runs or there is none.
  std::optional<bool> Reap();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

}  // namespace tributary
