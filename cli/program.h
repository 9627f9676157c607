#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::cli {

// A started program. Unless the program has ended, the destructor kills it and waits for its end. To start this binary
// again, use base/child_process.h instead.
class Program {
 public:
  struct Options {
    std::vector<std::string> arguments;  // [0] is the program, searched in PATH
    std::string output_path;             // file for its stdout and stderr, with an empty stdin; "": it inherits ours
    // If true, the program receives SIGTERM when this process ends, and it does not receive the terminal's Ctrl-C.
    bool helper = false;
    sigset_t signal_mask = {};
  };
  // NotFound: the program does not exist. PermissionDenied: it may not be executed.
  static absl::StatusOr<Program> Start(const Options& options);

  Program() = default;
  Program(Program&& other) noexcept { *this = std::move(other); }
  Program& operator=(Program&& other) noexcept;
  ~Program() { Kill(); }

  pid_t pid() const { return pid_; }
  bool running();  // checks for its end without waiting
  void Signal(int number) const;
  void Kill();

  // Returns the exit code of the ended program, or 128 + N if signal N ended it. Valid once running() is false.
  int exit_code() const;
  int term_signal() const;  // 0: it exited by itself
  // CPU time of the ended program and of all children that it waited for. 0 if Kill ended the program.
  uint64_t cpu_ns() const { return cpu_ns_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = true;
  int wait_status_ = 0;
  uint64_t cpu_ns_ = 0;
};

// Returns the path of the program `name`. Searches the directory of our own binary first, then PATH. NotFound: the
// message names the directory of our own binary.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace tributary::cli
