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

// Detects whether event loops make progress. Ask posts a task to each loop. A loop that has not run its task by the
// next Look is stuck. A stuck loop gets no second task. Not thread-safe. The tasks may run on any thread, and may be
// dropped or outlive this object.
class LoopProgress {
 public:
  // `post` passes a task to the loop. It must work from any thread.
  void Add(std::string name, std::function<void(std::function<void()> task)> post);

  void Ask();
  // Returns true if every loop has answered since Ask. Logs the name of a loop when it becomes stuck, and when it runs
  // again.
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

// Calls `ping` every `period_ns` from its own thread, as long as all loops make progress. If a loop is stuck, the pings
// stop, and the service manager ends the program. Costs one wake-up of each loop per period.
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
