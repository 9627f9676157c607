#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"

namespace tributary::intake {

// What the connections of one loop may take together, and those of one node: so that many peers that are each within
// their limits cannot take all memory, and a busy one cannot take all of its shard's time. On the loop's thread.
//
// Memory is that of what is not yet whole: parts of frames, definitions that wait for their batch, parts of symbol
// tables. When it is used up, the connection that has held the most for the longest (bytes × (time + 1 s)) is closed: a
// healthy node's frames are whole within moments, so it is not the one.
class Limits {
 public:
  struct Options {
    size_t memory_bytes_max = 256u << 20;
    size_t node_connections_max = 8;
    int64_t node_bytes_per_second = 64 << 20;  // in the long run; twice that at once
    size_t credit_bytes_max = 512u << 20;      // what all peers may have on their way: socket buffers hold it
  };
  Limits(Options options, const Clock& clock) : options_(options), clock_(clock) {}

  // One connection's part.
  class Share {
   public:
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // How much of memory it holds now. May call `evict`, of this one or of another.
    void Hold(size_t bytes);
    // It has received so much. How long it must not read then: 0 = it may go on.
    int64_t Receive(size_t bytes);

   private:
    friend class Limits;
    Share(Limits& of, std::string node_id, std::function<void()> evict);
    Limits& limits_;
    const std::string node_id_;
    const std::function<void()> evict_;
    size_t bytes_ = 0;
    MonotonicNs since_;  // bytes_ is not 0
  };

  // `evict` must let go of all that is held; it must not destroy the share. ResourceExhausted: the node has as many
  // connections as it may. With an empty node id only memory is limited.
  absl::StatusOr<std::unique_ptr<Share>> Join(const std::string& node_id, std::function<void()> evict);

  size_t memory_bytes() const { return memory_bytes_; }

  // What one more connection may have on its way: an equal part, within reason.
  uint32_t CreditBytes() const;

  // Whether one of the loop's sessions may log that it was refused, and how many could not since the last: peers that
  // come back at once must not fill the log.
  bool MayLog(uint64_t* suppressed) { return log_limit_.Allow(clock_.Monotonic(), suppressed); }

 private:
  struct Node {
    size_t connections = 0;
    int64_t budget_bytes = 0;  // below 0: it must wait
    MonotonicNs filled_at;
  };
  void EvictOne();

  const Options options_;
  const Clock& clock_;
  size_t memory_bytes_ = 0;
  size_t connections_ = 0;
  LogLimit log_limit_{100 * kNsPerMs};
  absl::flat_hash_set<Share*> holding_;
  absl::flat_hash_map<std::string, Node> nodes_;
};

}  // namespace tributary::intake
