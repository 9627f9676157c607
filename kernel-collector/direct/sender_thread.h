#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "kernel-collector/direct/batch_sender.h"

namespace tributary {

// Runs a BatchSender on its own thread. Use it on one thread.
class SenderThread {
 public:
  explicit SenderThread(std::unique_ptr<BatchSender> sender) : sender_(std::move(sender)) {}
  // Cancels the current request, and waits for the thread.
  ~SenderThread();

  BatchSender& sender() { return *sender_; }
  const BatchSender& sender() const { return *sender_; }
  void Start();
  // Makes the thread look for work. Call it after Push and AddSymbols.
  void Wake();
  // Calls Flush on the thread, and then `done`, also on the thread.
  void Flush(MonotonicNs deadline, std::function<void()> done);

 private:
  void Run();

  const std::unique_ptr<BatchSender> sender_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, stopping_ = false;  // guarded by mutex_
  MonotonicNs deadline_;                   // written before stopping_, read after
  std::function<void()> done_;             // the same
  std::thread thread_;
};

}  // namespace tributary
