#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/metrics.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary::ingest {

// Speaks to the symbol store on behalf of a shard's loop: what is a disk access there must not block here. One thread.
class SymbolWorker {
 public:
  struct Options {
    size_t queue_max = 1024;
    size_t queue_bytes_max = 256u << 20;  // of uploaded tables that wait
  };
  // `symbols` and `metrics` outlive this.
  SymbolWorker(SymbolStore& symbols, Options options, Metrics& metrics);
  ~SymbolWorker();  // Stop

  // Which of `candidates` to ask a node for, `ask_max` at most; `reply` is called on the worker's thread with them and
  // with how many candidates that took. False: full.
  using Reply = std::function<void(std::vector<ExecutableId> ask, size_t considered)>;
  bool TryChoose(SymbolAsker asker, std::vector<ExecutableId> candidates, size_t ask_max, Reply reply);

  // What a node answered. Dropped and counted when full: the executable is asked for again later.
  void Take(SymbolAsker asker, const ExecutableId& id, absl::StatusOr<std::string> encoded_table);

  // Its connection is over, and what it sent is before this in the queue. When that is full, the time-out does the
  // same.
  void Release(SymbolAsker asker);

  void Stop();  // does what is queued first

 private:
  void Run();
  void Put(SymbolAsker asker, const ExecutableId& id, const absl::StatusOr<std::string>& encoded_table);
  void Drop(const ExecutableId& id);

  SymbolStore& symbols_;
  const Options options_;
  Counter& dropped_;
  std::atomic<size_t> queued_bytes_{0};
  BoundedQueue<std::function<void()>> queue_;
  std::thread thread_;
};

}  // namespace tributary::ingest
