#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/loop.h"

namespace tributary {

// Where slow reads go: files and /proc, which may block.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` elsewhere, then `done` on the caller's thread, in order of submission. False: too much is waiting
  // already; neither will run.
  virtual bool Submit(std::function<void()> work, std::function<void()> done) = 0;
};

// One thread behind a bounded queue, begun with the first job. Submit and the destructor on the loop's thread. The
// destructor drops what has not begun and waits two seconds at most for what has: a file system that hangs must not
// keep the collector from stopping.
//
// Where jobs may hang and need not be done in order, `stuck_max` says how many may while the others go on: a job that
// others have waited for for `stuck_ms` keeps its thread, which ends with it, and another thread takes the next.
class Worker : public Executor {
 public:
  static constexpr size_t kQueueMax = 4096;

  struct Options {
    size_t stuck_max = 0;
    uint64_t stuck_ms = 500;         // up to twice that
    std::function<void()> on_stuck;  // on the loop's thread: one more
  };
  explicit Worker(Loop& loop) : Worker(loop, Options()) {}
  Worker(Loop& loop, Options options);
  ~Worker() override;
  bool Submit(std::function<void()> work, std::function<void()> done) override;

 private:
  struct State;
  static void RunJobs(State& state, uint64_t number);
  void StartThread();  // with the state's mutex
  void ReplaceStuck();

  const Options options_;
  std::shared_ptr<State> state_;
  Timer check_;  // while jobs wait
  bool checking_ = false;
  uint64_t threads_ = 0;  // that were begun; the last one takes jobs
};

}  // namespace tributary
