#pragma once

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
class Worker : public Executor {
 public:
  static constexpr size_t kQueueMax = 4096;

  explicit Worker(Loop& loop);
  ~Worker() override;
  bool Submit(std::function<void()> work, std::function<void()> done) override;

 private:
  struct State;
  static void RunJobs(State& state);

  std::shared_ptr<State> state_;
  bool begun_ = false;
};

}  // namespace tributary
