#include "kernel-collector/direct/sender_thread.h"

#include <chrono>
#include <utility>

namespace tributary {

SenderThread::~SenderThread() {
  if (!thread_.joinable()) return;
  sender_->Cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SenderThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

void SenderThread::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void SenderThread::Flush(MonotonicNs deadline, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    deadline_ = deadline;
    done_ = std::move(done);
    stopping_ = true;
  }
  changed_.notify_all();
}

void SenderThread::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    lock.unlock();
    const int64_t wait_ns = sender_->RunOnce();
    lock.lock();
    changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return woken_ || stopping_; });
  }
  lock.unlock();
  sender_->Flush(deadline_);
  if (done_) done_();
}

}  // namespace tributary
