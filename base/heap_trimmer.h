#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/heap.h"
#include "base/metrics.h"

namespace tributary {

// Returns memory to the system after work that freed much of it, such as a large query. Trims at most once per Tick,
// because other threads may have to wait for memory during a trim (60 ms for 1 GB). Trims only if `bytes_min` are free,
// and the process or its free memory has grown by as much since the last trim: the process must get trimmed pages back
// when it needs memory again.
class HeapTrimmer {
 public:
  struct Options {
    size_t bytes_min = 8u << 20;
    std::function<size_t()> free_bytes = FreeHeapBytes;
    std::function<uint64_t()> resident_bytes = ResidentBytes;
    std::function<void()> trim = TrimHeap;
  };
  // `trims` counts trims. It must outlive the object.
  HeapTrimmer(Options options, Counter& trims);

  // Any thread: work has ended that may have freed much memory.
  void Note() { noted_.store(true, std::memory_order_relaxed); }
  // Trims the heap if Note was called since the last Tick. Call it every few seconds, on one thread that may block.
  void Tick();

 private:
  const Options options_;
  Counter& trims_;
  std::atomic<bool> noted_{false};
  // After the last trim, or less if there was less since then.
  uint64_t resident_bytes_ = 0;
  size_t free_bytes_ = 0;
};

}  // namespace tributary
