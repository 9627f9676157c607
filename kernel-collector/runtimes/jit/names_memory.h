#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace tributary {

// The memory that the names of all processes need together. Thread-safe.
class NamesMemory {
 public:
  explicit NamesMemory(size_t bytes_max) : bytes_max_(bytes_max) {}

  size_t used() const { return used_.load(std::memory_order_relaxed); }
  bool IsFull() const { return used() >= bytes_max_; }

 private:
  friend class NamesMemoryShare;

  const size_t bytes_max_;
  std::atomic<size_t> used_{0};
};

// A part of the memory for names, which counts as used as long as the object lives. So names count until their last
// owner is gone, on any thread.
class NamesMemoryShare {
 public:
  NamesMemoryShare() = default;
  explicit NamesMemoryShare(std::shared_ptr<NamesMemory> memory, size_t bytes = 0) : memory_(std::move(memory)) {
    Resize(bytes);
  }
  ~NamesMemoryShare() { Resize(0); }
  NamesMemoryShare(NamesMemoryShare&& other) noexcept
      : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  NamesMemoryShare& operator=(NamesMemoryShare&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // Unsigned arithmetic wraps, so that a share can also shrink.
  void Resize(size_t bytes) {
    if (memory_ != nullptr) memory_->used_.fetch_add(bytes - std::exchange(bytes_, bytes), std::memory_order_relaxed);
  }
  const std::shared_ptr<NamesMemory>& memory() const { return memory_; }

 private:
  std::shared_ptr<NamesMemory> memory_;
  size_t bytes_ = 0;
};

}  // namespace tributary
