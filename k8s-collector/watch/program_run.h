#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/loop.h"

namespace tributary {

// One run of another program on a Loop, without a shell and without waiting: the loop goes on while the program runs.
// The program gets an empty standard input, and is the leader of a session and of a process group of its own. The run
// keeps the standard output, and the last line of the standard error. Use it on the loop's thread.
class ProgramRun {
 public:
  struct Program {
    std::string path;
    std::vector<std::string> arguments;    // argv: the first is the program's name
    std::vector<std::string> environment;  // "NAME=VALUE"
  };
  struct Limits {
    uint64_t run_ms_max = 30'000;
    // After the end of the program, how long its pipes may stay open. Its children may have them.
    uint64_t held_ms_max = 1'000;
    size_t output_bytes_max = 1u << 20;
  };
  enum class Ending {
    kExited,
    kSignaled,
    kTimedOut,      // killed with its process group
    kWroteTooMuch,  // killed with its process group
    kOutputHeld,    // it ended, but another process holds its standard output open. Its process group was killed
  };
  struct Outcome {
    Ending ending = Ending::kExited;
    int code = 0;  // the exit code of kExited, or the signal of kSignaled
    std::string output;
    std::string last_error_line;  // without tokens (hidden_tokens.h), at most kErrorLineBytesMax bytes, not escaped
  };
  static constexpr size_t kErrorLineBytesMax = 300;

  // Calls `done` once, after Start has returned. `done` may destroy the run. `loop` must outlive it. Returns the errors
  // of ErrnoStatus (status.h) if the program cannot be started, and InvalidArgument if the file is not a program.
  static absl::StatusOr<std::unique_ptr<ProgramRun>> Start(Loop& loop, Program program, Limits limits,
                                                           std::function<void(Outcome)> done);
  // Kills the program and its process group if `done` was not called, or if the program still exists. Does not call
  // `done`.
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  // Returns false if the program still exists. So it may be after kTimedOut and kWroteTooMuch, for a short time: the
  // kernel kills a process only when its current system call can be interrupted.
  bool has_ended() const;

 private:
  struct State;
  explicit ProgramRun(std::unique_ptr<State> state);
  State* state_;  // freed after libuv has closed its handles
};

}  // namespace tributary
