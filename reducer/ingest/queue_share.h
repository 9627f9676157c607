#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Returns the memory that a decoded batch takes, accurate enough for a limit.
size_t MemoryOf(const RowBatch& batch);

// Limits how much of a shard's queue each node may hold. A node that floods fills its share, not the queue, and the
// batches of other nodes fit as before. A node may hold a third of the free space: a quarter of the queue if the node
// is alone, an (n + 3)th if n nodes fill the queue. Space for the next node always remains. A node with nothing in the
// queue may add one batch of any size. The limit is per node and not per session, because a node may open any number of
// sessions. Source: dynamic thresholds, Choudhury and Hahne 1998.
//
// Costs one look-up per batch. Only nodes with queued batches take memory. Use an object on one thread.
class QueueShare {
 public:
  struct Options {
    size_t bytes_max = 64u << 20;  // of the queue
    size_t batches_max = 1024;     // a batch counts as at least bytes_max / batches_max bytes
  };
  explicit QueueShare(Options options) : options_(options) {}

  bool Allows(std::string_view node_id, size_t bytes) const;
  void Add(std::string_view node_id, size_t bytes);
  // Call it when the oldest batch of that node has left the queue.
  void Remove(std::string_view node_id);

  size_t bytes() const { return bytes_; }
  size_t nodes() const { return nodes_.size(); }

 private:
  struct Held {
    std::deque<size_t> batches;  // oldest first
    size_t bytes = 0;
  };
  size_t CostOf(size_t bytes) const;

  const Options options_;
  absl::flat_hash_map<std::string, Held> nodes_;
  size_t bytes_ = 0;
};

}  // namespace tributary::ingest
