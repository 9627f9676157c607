#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// Holds data that has been taken back from the walk in the kernel. The data may be reused only when no walk can still
// see it. Waiting for this blocks the worker for 6–9 ms, so many retirements share one wait. A wait begins when enough
// cost has gathered, or when a caller needs space (Flush). Loop thread only. `maps` must outlive the executor's jobs.
class RetireQueue {
 public:
  // `batch`: the cost at which a wait begins by itself.
  RetireQueue(UnwindMaps& maps, Executor& executor, uint64_t batch);
  ~RetireQueue();
  RetireQueue(const RetireQueue&) = delete;
  RetireQueue& operator=(const RetireQueue&) = delete;

  // `free` runs on the loop after a grace period that begins after this call. It never runs if this queue is destroyed
  // first.
  void Retire(uint64_t cost, std::function<void()> free);
  // Begins a wait for everything gathered. If a wait is already running, the new one begins after it.
  void Flush();
  // Tries again after a full worker refused a wait, or after a wait failed. Called from a timer.
  void Retry();
  // Sets a callback that runs after each wait that freed something.
  void OnFreed(std::function<void()> callback);

  bool waiting() const;  // true if something will be freed without another call
  bool empty() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tributary
