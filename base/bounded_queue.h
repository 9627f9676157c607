#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace tributary {

// A queue that passes work from any thread to one consumer thread (a store writer, an exporter, a worker). If the queue
// is full, TryPush refuses the item, and the caller must count it as dropped. Each push locks a mutex, so push batches,
// not single samples.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Returns false, and leaves `item` unchanged, if the queue is full or closed.
  bool TryPush(T&& item) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // Removes and returns the oldest item. Waits if there is none. Returns nullopt once the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // Removes and returns the oldest item, or returns nullopt if the queue is empty. Never waits. For collecting several
  // items after Pop.
  std::optional<T> TryPop() {
    std::lock_guard lock(mutex_);
    return TakeFront();
  }

  // Makes TryPush refuse items from now on. Items in the queue can still be popped.
  void Close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  size_t capacity() const { return capacity_; }

 private:
  std::optional<T> TakeFront() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace tributary
