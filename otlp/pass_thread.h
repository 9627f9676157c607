#pragma once

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/types.h"

namespace tributary::otlp {

// Runs the passes of a sender on its own thread. `Work` has these functions:
//   int64_t RunOnce()            one pass. Returns the time until the next pass in ns
//   Flush(MonotonicNs deadline)  the last pass, which ends by `deadline`
//   void Cancel()                makes RunOnce and Flush return soon. Any thread may call it
// Use a PassThread on one thread. Call Start before Flush: without a thread, `done` would never run. Only the first
// Flush has an effect.
template <typename Work>
class PassThread {
 public:
  explicit PassThread(std::unique_ptr<Work> work) : work_(std::move(work)) {}
  PassThread(const PassThread&) = delete;
  PassThread& operator=(const PassThread&) = delete;
  // Cancels the current pass, and waits for the thread.
  ~PassThread() {
    if (!thread_.joinable()) return;
    work_->Cancel();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Work& work() { return *work_; }
  const Work& work() const { return *work_; }
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  // Begins the next pass at once, or after the current one.
  void Wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  }
  // Runs the last pass on the thread, and then `done`, also on the thread. Start must have been called. Only the first
  // call has an effect: the `done` of another one does not run.
  void Flush(MonotonicNs deadline, std::function<void()> done) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      deadline_ = deadline;
      done_ = std::move(done);
      stopping_ = true;
    }
    changed_.notify_all();
  }

 private:
  void Run() {
    // If the reader of a pipe is gone, or a file reaches the limit on file sizes, write must return an error and not
    // end the process.
    sigset_t of_write;
    sigemptyset(&of_write);
    sigaddset(&of_write, SIGPIPE);
    sigaddset(&of_write, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &of_write, nullptr);

    std::unique_lock lock(mutex_);
    while (!stopping_) {
      woken_ = false;
      lock.unlock();
      const int64_t wait_ns = work_->RunOnce();
      lock.lock();
      changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return woken_ || stopping_; });
    }
    lock.unlock();
    work_->Flush(deadline_);
    if (done_) done_();
  }

  const std::unique_ptr<Work> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, stopping_ = false;  // guarded by mutex_
  MonotonicNs deadline_;                   // written before stopping_, read after
  std::function<void()> done_;             // the same
  std::thread thread_;
};

}  // namespace tributary::otlp
