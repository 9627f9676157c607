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

// The SymbolDesk of one shard. It calls the symbol store on a thread of its own, because the symbol store reads and
// writes files and the shard's loop must not wait for the disk. Progress and TakeReleased use only the store's
// SymbolDemand, in memory, so they run on the loop.
class SymbolWorker final : public SymbolDesk {
 public:
  struct Options {
    uint32_t shard = 0;  // added to `asker`, so that connections of different shards have different numbers
    size_t queue_max = 1024;
    size_t queue_bytes_max = 256u << 20;  // of received tables that wait to be stored
  };
  // Replies run on `loop`. `loop`, `symbols` and `metrics` must outlive the SymbolWorker.
  SymbolWorker(Loop& loop, SymbolStore& symbols, Options options, Metrics& metrics);
  ~SymbolWorker();  // Stop

  bool TryChoose(const SymbolNode& node, std::vector<ExecutableId> candidates, size_t ask_max, Reply reply) override;
  void Take(const SymbolNode& node, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) override;
  void TakeDigest(const SymbolNode& node, const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) override;
  void Progress(uint64_t asker) override;
  // Runs after the queued work of the same connection. If the queue is full, nothing is released now, and the time-out
  // of SymbolDemand applies.
  void Release(uint64_t asker) override;
  std::vector<ExecutableId> TakeReleased() override;

  void Stop();  // finishes the queued work first

 private:
  SymbolAsker AskerOf(uint64_t asker) const;
  void Run();
  void Put(const SymbolNode& node, const ExecutableId& id, const absl::StatusOr<std::string>& encoded_table);
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
