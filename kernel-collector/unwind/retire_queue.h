#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// What has been taken back from the walk in the kernel, and may be reused only when no walk can still see it. A wait
// for that blocks the worker 6–9 ms, so many share one; waits begin when enough has gathered, or somebody needs room.
// Loop thread only; `maps` outlives the executor's jobs.
class RetireQueue {
 public:
  // `batch`: cost at which a wait begins by itself.
  RetireQueue(UnwindMaps& maps, Executor& executor, uint64_t batch);
  ~RetireQueue();
  RetireQueue(const RetireQueue&) = delete;
  RetireQueue& operator=(const RetireQueue&) = delete;

  // `free` runs on the loop after a grace period that begins after this call; never, when this goes before.
  void Retire(uint64_t cost, std::function<void()> free);
  // Begins a wait for all that is there, if none is on its way: after that one otherwise.
  void Flush();
  // What a full worker turned away, or a failed wait left, is tried again. From a timer.
  void Retry();
  // After each wait that freed something.
  void OnFreed(std::function<void()> callback);

  bool waiting() const;  // something will be freed without another call
  bool empty() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tributary
