#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::cli {

// A program that was started; killed and waited for at the latest when the object goes. base/child_process.h starts
// this binary again instead.
class Program {
 public:
  struct Options {
    std::vector<std::string> arguments;  // [0] is the program, looked for in PATH
    std::string output_path;             // takes its output and errors; "": they go where ours go
    // A helper: ends when we end, and a terminal's Ctrl-C does not reach it.
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
  bool running();  // notices its end without waiting
  void Signal(int number) const;
  void Kill();

  // Once it has ended: its exit code, 128 + N after signal N.
  int exit_code() const;
  int term_signal() const;  // 0: it exited by itself
  // CPU of it and of those of its children that it waited for.
  uint64_t cpu_ns() const { return cpu_ns_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = true;
  int wait_status_ = 0;
  uint64_t cpu_ns_ = 0;
};

// The program `name` beside our own binary, else in PATH. NotFound: the message says where it was looked for.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace tributary::cli
