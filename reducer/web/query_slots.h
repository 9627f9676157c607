#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "base/metrics.h"

namespace tributary {

// Limits how many queries run at the same time. Further queries wait for their turn, each on its own thread. The query
// that has waited longest gets the next free slot. Any thread may call the methods.
//
// A waiting query holds a thread of the HTTP server. Requests that need no slot need these threads, too. So only a
// limited number of queries may wait, and the next ones are refused at once.
class QuerySlots {
 public:
  struct Options {
    size_t running_max = 4;  // at least 1
    size_t waiting_max = 80;
    int64_t wait_ms = 10'000;
  };
  QuerySlots(const Options& options, Metrics& metrics);
  QuerySlots(const QuerySlots&) = delete;

  // Waits up to `wait_ms` for a slot. Returns false if there was none, or if too many queries wait already. Also
  // returns false soon after `is_cancelled` has returned true. After true, the caller must call Release once.
  bool Acquire(absl::FunctionRef<bool()> is_cancelled);
  void Release();

 private:
  struct Waiter {
    std::condition_variable turn{};
    bool has_slot = false;
  };

  const Options options_;
  Gauge &running_count_, &waiting_count_;
  std::mutex mutex_;
  // The next are guarded by mutex_.
  size_t running_ = 0;
  std::list<Waiter*> waiting_;  // the oldest first
};

// Holds a slot as long as it exists, if there was one.
class QuerySlot {
 public:
  QuerySlot(QuerySlots& slots, absl::FunctionRef<bool()> is_cancelled)
      : slots_(slots), held_(slots.Acquire(is_cancelled)) {}
  ~QuerySlot() {
    if (held_) slots_.Release();
  }
  QuerySlot(const QuerySlot&) = delete;
  bool held() const { return held_; }

 private:
  QuerySlots& slots_;
  const bool held_;
};

}  // namespace tributary
