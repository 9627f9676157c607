#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "reducer/ingest/symbol_desk.h"
#include "reducer/symbolizer/symbol_store.h"

namespace tributary::ingest {

// The desk of one shard. It uses the symbol store, which touches the disk, on its own thread, so that the shard's loop
// never waits for the disk. Calls that only use the store's SymbolDemand run on the loop.
class SymbolWorker final : public SymbolDesk {
 public:
  struct Options {
    uint32_t shard = 0;  // becomes part of the askers' numbers, so that they are unique over all shards
    size_t queue_max = 1024;
    size_t queue_bytes_max = 256u << 20;  // limit of uploaded tables that wait
  };
  // Replies run on `loop`. `loop`, `symbols` and `metrics` must outlive the object.
  SymbolWorker(Loop& loop, SymbolStore& symbols, Options options, Metrics& metrics);
  ~SymbolWorker();  // Stop

  bool TryChoose(uint64_t asker, std::vector<ExecutableId> candidates, size_t ask_max, Reply reply) override;
  void Take(uint64_t asker, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) override;
  void Progress(uint64_t asker) override;
  // Runs after the work that the connection has queued. If the queue is full, the time-out has the same effect.
  void Release(uint64_t asker) override;
  std::vector<ExecutableId> TakeReleased() override;

  void Stop();  // finishes the queued work first

 private:
  SymbolAsker AskerOf(uint64_t asker) const;
  void Run();
  void Put(SymbolAsker asker, const ExecutableId& id, const absl::StatusOr<std::string>& encoded_table);
  void Drop(const ExecutableId& id);

  Loop& loop_;
  SymbolStore& symbols_;
  const Options options_;
  Counter& dropped_;
  uint64_t released_seen_ = 0;  // SymbolDemand::ReleasedSince's cursor
  std::atomic<size_t> queued_bytes_{0};
  BoundedQueue<std::function<void()>> queue_;
  std::thread thread_;
};

}  // namespace tributary::ingest
