#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tributary {

// Finds out whether event loops make progress: each is handed a task that ticks, and one that has not run its task by
// the next look is stuck. A stuck loop is handed no second task. Not thread-safe; tasks may run on any thread, and may
// be dropped or outlive this object.
class LoopProgress {
 public:
  // `post` hands a task to the loop, from any thread.
  void Add(std::string name, std::function<void(std::function<void()> task)> post);

  void Ask();
  // True if every loop has answered since Ask. Logs the name of each that has not, once until it goes on.
  bool Look();

 private:
  struct Watched {
    std::string name;
    std::function<void(std::function<void()>)> post;
    std::shared_ptr<std::atomic<bool>> answered = std::make_shared<std::atomic<bool>>(true);
    bool named = false;
  };
  std::deque<Watched> loops_;
};

// Calls `ping` every `period_ns` from a thread of its own, while all loops make progress. A service manager that misses
// the pings ends the program, and so a stuck loop does not stay unnoticed. Costs a wake-up of each loop a period.
class Watchdog {
 public:
  Watchdog(LoopProgress loops, int64_t period_ns, std::function<void()> ping);
  ~Watchdog();  // before the loops are destroyed

 private:
  static constexpr int kLooksPerPeriod = 8;  // while a loop is stuck

  void Run();
  bool WaitFor(int64_t ns);  // false: it is over

  LoopProgress loops_;
  const int64_t period_ns_;
  const std::function<void()> ping_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tributary
