#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Another process of this program, which does one kind of work for this one over a socket: parsing that happens in a
// sandbox (sandbox.h). Ended with its owner. Thread: any, one at a time.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Stop(); }

  // This binary again, without an environment, with `argument` alone; its end of the socket is kSocket then.
  static constexpr int kSocket = 3;
  static absl::StatusOr<ChildProcess> SpawnSelf(const char* argument);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }

  // Kills it. True: it had not ended by itself, and well. A signal does not change how a process that is ending has
  // ended.
  bool Stop();
  // Whether one that has ended by itself ended well; it leaves nothing behind then. nullopt: it runs, or there is none.
  std::optional<bool> Reap();

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

}  // namespace tributary
