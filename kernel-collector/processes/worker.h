#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/loop.h"

namespace tributary {

// Runs jobs that may block, such as reads of files and /proc.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` on another thread, then `done` on the caller's thread, in order of submission. Returns false if the
  // queue is full; then neither function runs.
  virtual bool Submit(std::function<void()> work, std::function<void()> done) = 0;
};

// One thread with a bounded queue. The first job starts the thread. Call Submit and the destructor on the loop's
// thread. The destructor drops jobs that have not begun. It waits at most two seconds for a running job: a hanging file
// system must not prevent the collector from stopping.
//
// If jobs may hang and need no fixed order, set `stuck_max`: up to this number of stuck jobs do not block the others. A
// job is stuck if other jobs have waited for it for `stuck_ms`. A new thread then runs the next jobs. The thread of the
// stuck job ends with this job.
class Worker : public Executor {
 public:
  static constexpr size_t kQueueMax = 4096;

  struct Options {
    size_t stuck_max = 0;
    uint64_t stuck_ms = 500;         // in practice up to twice this time
    std::function<void()> on_stuck;  // called on the loop's thread for each newly stuck job
  };
  explicit Worker(Loop& loop) : Worker(loop, Options()) {}
  Worker(Loop& loop, Options options);
  ~Worker() override;
  bool Submit(std::function<void()> work, std::function<void()> done) override;

 private:
  struct State;
  static void RunJobs(State& state, uint64_t number);
  void StartThread();  // the caller must hold the state's mutex
  void ReplaceStuck();

  const Options options_;
  std::shared_ptr<State> state_;
  Timer check_;  // runs while jobs wait
  bool checking_ = false;
  uint64_t threads_ = 0;  // number of threads started so far; the last of them takes jobs
};

}  // namespace tributary
