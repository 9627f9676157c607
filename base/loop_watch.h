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

// Detects whether event loops make progress. Ask posts a task to each loop. If a loop has not run its task by the next
// call of Look, it counts as stuck. Ask posts no second task to a loop that has not run the first. Not thread-safe, but
// the tasks may run on any thread. The tasks may be discarded, and may run after this object was destroyed.
class LoopProgress {
 public:
  // Adds a loop. `post` must pass a task to the loop, and must be callable on any thread.
  void Add(std::string name, std::function<void(std::function<void()> task)> post);

  void Ask();
  // Returns true if every loop has run the task of the last Ask. Logs the name of a loop when it becomes stuck, and
  // when it runs again.
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

// Calls `ping` every `period_ns` on its own thread, as long as all loops make progress. While a loop is stuck, it does
// not call `ping`, so that the service manager ends the program. Wakes each loop once per period.
class Watchdog {
 public:
  Watchdog(LoopProgress loops, int64_t period_ns, std::function<void()> ping);
  ~Watchdog();  // must run before the loops are destroyed

 private:
  static constexpr int kLooksPerPeriod = 8;  // while a loop is stuck

  void Run();
  bool WaitFor(int64_t ns);  // returns false if the watchdog must stop

  LoopProgress loops_;
  const int64_t period_ns_;
  const std::function<void()> ping_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tributary
