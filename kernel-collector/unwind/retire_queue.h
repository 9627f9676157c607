#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// Delays the reuse of memory that was withdrawn from the walk in the kernel. The memory may be reused only after a
// grace period, when no walk can use it any more (UnwindMaps::WaitGrace). Waiting for the grace period blocks the
// worker for 6–9 ms, so many retirements share one wait. A wait begins when the sum of their costs reaches `batch`, or
// when a caller needs space (Flush). Loop thread only. `maps` must outlive the executor's jobs.
class RetireQueue {
 public:
  // `batch`: the sum of costs at which a wait begins without a call of Flush.
  RetireQueue(UnwindMaps& maps, Executor& executor, uint64_t batch);
  ~RetireQueue();
  RetireQueue(const RetireQueue&) = delete;
  RetireQueue& operator=(const RetireQueue&) = delete;

  // Calls `free` on the loop after a grace period that begins after this call. Does not call it if this queue is
  // destroyed first.
  void Retire(uint64_t cost, std::function<void()> free);
  // Begins a wait for all retirements so far. If a wait is already running, the new wait begins after it.
  void Flush();
  // Repeats a wait that failed, or that the worker refused because its queue was full. Call it from a timer.
  void Retry();
  // Sets a callback that runs after each wait that freed something.
  void OnFreed(std::function<void()> callback);

  bool waiting() const;  // true if something will be freed without another call of Retire or Flush
  bool empty() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tributary
