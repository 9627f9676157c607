#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Memory that a decoded batch takes, near enough for a cap.
size_t MemoryOf(const RowBatch& batch);

// How much of a shard's queue each node may hold: a node that floods fills its share, not the queue, and the others'
// batches find room as before. A node may hold a third of what is left free: a quarter of the queue when it is alone,
// an (n + 3)th when there are n of them, and room stays for the next one. A node with nothing in the queue may put in
// one batch of any size. By node and not by session: a node may open as many sessions as it likes. Source: dynamic
// thresholds, Choudhury and Hahne 1998.
//
// Costs a look-up a batch. Memory: the nodes that have something queued. One thread.
class QueueShare {
 public:
  struct Options {
    size_t bytes_max = 64u << 20;  // of the queue
    size_t batches_max = 1024;     // a batch counts as this part of the bytes at least
  };
  explicit QueueShare(Options options) : options_(options) {}

  bool Allows(std::string_view node_id, size_t bytes) const;
  void Add(std::string_view node_id, size_t bytes);
  // The oldest batch of that node has left the queue.
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
