#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/alarm.h"

// C++ owners of libuv handles. Use each object on the thread of its loop, unless a comment says otherwise.

namespace tributary {

// An event loop, which one thread runs. All handles on the loop must be destroyed before the loop: on its thread, or
// after Run has returned.
class Loop final : public AlarmSource {
 public:
  Loop();
  ~Loop();  // runs libuv's close callbacks of the destroyed handles
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Run();   // until Stop
  void Stop();  // from any thread
  // Runs `task` on the loop's thread soon. May be called on any thread. Tasks of one thread run in the order in which
  // this thread posted them. The caller must not post a task after the loop was destroyed. When the loop stops, tasks
  // that have not run are discarded.
  void Post(std::function<void()> task);

  std::unique_ptr<Alarm> NewAlarm(std::function<void()> callback) override;

  uv_loop_t* raw() { return &loop_; }

 private:
  void Drain();

  uv_loop_t loop_;
  uv_async_t wake_;
  uv_prepare_t update_time_;  // a timer that was started in a timer's callback may be due
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  // guarded by mutex_
  bool stop_ = false;                         // guarded by mutex_
};

class Timer : public Alarm {
 public:
  Timer(Loop& loop, std::function<void()> callback);
  ~Timer() override;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void StartOnce(uint64_t delay_ms) override;  // never keeps the loop from its sockets, also with 0 in the callback
  void StartEvery(uint64_t period_ms) override;
  void Stop() override;

 private:
  struct State;
  State* state_;  // freed by libuv's close callback
};

// Calls `callback` while `fd` is readable. Does not own `fd`. Inactive until Start.
class ReadWatcher {
 public:
  ReadWatcher(Loop& loop, int fd, std::function<void()> callback);
  ~ReadWatcher();
  ReadWatcher(const ReadWatcher&) = delete;
  ReadWatcher& operator=(const ReadWatcher&) = delete;

  void Start();
  void Stop();

 private:
  struct State;
  State* state_;
};

// Calls `callback` when the process receives the signal `signal_number`, such as SIGINT or SIGTERM.
class SignalWatcher {
 public:
  SignalWatcher(Loop& loop, int signal_number, std::function<void()> callback);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  struct State;
  State* state_;
};

}  // namespace tributary
