#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Returns about how many bytes of memory a decoded batch uses. Use it for limits only.
size_t MemoryOf(const RowBatch& batch);

// Limits how much of a shard's queue the batches of one node may fill. A node that sends too much fills its share, but
// not the whole queue. A node's batches may use up to a third of the space that is free at this time. So a single node
// gets at most a quarter of the queue, and n nodes that all send too much get 1/(n + 3) of the queue each. A node
// without a batch in the queue may add one batch of any size. The limit is per node and not per session, because a node
// may open any number of sessions. Source: dynamic thresholds, Choudhury and Hahne 1998.
//
// Costs a few hash table look-ups per batch. Memory is used only for nodes that have batches in the queue. Used by one
// thread.
class QueueShare {
 public:
  struct Options {
    size_t bytes_max = 64u << 20;  // of the queue
    size_t batches_max = 1024;     // a batch counts as at least bytes_max / batches_max bytes
  };
  explicit QueueShare(Options options) : options_(options) {}

  bool Allows(std::string_view node_id, size_t bytes) const;
  void Add(std::string_view node_id, size_t bytes);
  // Call it when the oldest batch of the node was committed.
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
