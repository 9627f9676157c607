#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::cli {

// A started program. The destructor kills it and waits for it, unless it has ended before. base/child_process.h, in
// contrast, starts this binary again.
class Program {
 public:
  struct Options {
    std::vector<std::string> arguments;  // [0] is the program, searched in PATH
    std::string output_path;             // file for its output and errors; "": the same destination as ours
    // A helper ends when this process ends, and a terminal's Ctrl-C does not reach it.
    bool helper = false;
    sigset_t signal_mask = {};
  };
  // NotFound, PermissionDenied: the program cannot be run.
  static absl::StatusOr<Program> Start(const Options& options);

  Program() = default;
  Program(Program&& other) noexcept { *this = std::move(other); }
  Program& operator=(Program&& other) noexcept;
  ~Program() { Kill(); }

  pid_t pid() const { return pid_; }
  bool running();  // checks for its end without waiting
  void Signal(int number) const;
  void Kill();

  // After its end: its exit code, or 128 + N after signal N.
  int exit_code() const;
  int term_signal() const;  // 0: it exited by itself
  // CPU time of the program and of its children that it waited for.
  uint64_t cpu_ns() const { return cpu_ns_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = true;
  int wait_status_ = 0;
  uint64_t cpu_ns_ = 0;
};

// Returns the program `name` next to our own binary, else from PATH. NotFound: the message says where it was searched.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace tributary::cli
