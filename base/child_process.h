#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Another process of this program, which does one kind of work for this one: parsing that happens in a sandbox
// (sandbox.h). The two talk over a socket, or by files that the process is handed. Ended with its owner. Thread: any,
// one at a time.
class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(pid_t pid, Fd socket = Fd()) : pid_(pid), socket_(std::move(socket)) {}
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Stop(); }

  // A descriptor of ours, or -1 for none, and its number in the other process: less than kHandedEnd.
  struct Handed {
    int from, to;
  };
  static constexpr int kHandedEnd = 16;
  struct Options {
    std::string what;                    // for errors: "a child process"
    std::vector<std::string> arguments;  // the first is its name
    std::vector<Handed> descriptors;     // besides those that are not close-on-exec
  };
  // This binary again, without an environment and without a socket. Errors: as ErrnoStatus says.
  static absl::StatusOr<ChildProcess> SpawnSelf(Options options);
  // With `argument` alone, and a socket whose other end is kSocket there.
  static constexpr int kSocket = 3;
  static absl::StatusOr<ChildProcess> SpawnSelf(const char* argument);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // -1: none

  // Kills it, which must be running, and waits for its end. Returns waitpid's status. A signal does not change how a
  // process that is ending has ended.
  int End();
  // End, if it is running. True: it had not ended by itself, and well.
  bool Stop();
  // Whether one that has ended by itself ended well; it leaves nothing behind then. nullopt: it runs, or there is none.
  std::optional<bool> Reap();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

}  // namespace tributary
