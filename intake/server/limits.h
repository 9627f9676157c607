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

// Limits the resources that the connections of one loop take together, and the connections of one node. So many peers
// together cannot use up the memory, even if each is within its own limits, and a busy peer cannot use all of its
// shard's time. On the loop's thread.
//
// Memory means the memory of incomplete data: parts of frames, definitions that wait for their batch, parts of symbol
// tables. When the limit is exceeded, the connection with the highest product of held bytes and holding time (bytes ×
// (time + 1 s)) is closed. This is hardly ever the connection of a healthy node, because its frames are complete within
// moments.
class Limits {
 public:
  struct Options {
    size_t memory_bytes_max = 256u << 20;
    size_t node_connections_max = 8;
    int64_t node_bytes_per_second = 64 << 20;  // on average; twice that at once
    size_t credit_bytes_max = 512u << 20;      // bytes in flight of all peers together: in socket buffers
  };
  Limits(Options options, const Clock& clock) : options_(options), clock_(clock) {}

  // The share of one connection.
  class Share {
   public:
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Sets how much memory the connection holds now. If the limit is exceeded, calls `evict` of this share or of
    // others.
    void Hold(size_t bytes);
    // Counts received bytes. Returns for how many milliseconds the connection must not read; 0: it may read.
    int64_t Receive(size_t bytes);

   private:
    friend class Limits;
    Share(Limits& of, std::string node_id, std::function<void()> evict);
    Limits& limits_;
    const std::string node_id_;
    const std::function<void()> evict_;
    size_t bytes_ = 0;
    MonotonicNs since_;  // when bytes_ became other than 0
  };

  // `evict` must free everything that the connection holds; it must not destroy the share. ResourceExhausted if the
  // node already has as many connections as it may. With an empty node id only memory is limited.
  absl::StatusOr<std::unique_ptr<Share>> Join(const std::string& node_id, std::function<void()> evict);

  size_t memory_bytes() const { return memory_bytes_; }

  // Returns how many bytes one more connection may have in flight: an equal part, within bounds.
  uint32_t CreditBytes() const;

  // Returns whether one of the loop's sessions may log that it was refused, and how many such logs were suppressed
  // since the last. Peers that reconnect at once must not fill the log.
  bool MayLog(uint64_t* suppressed) { return log_limit_.Allow(clock_.Monotonic(), suppressed); }

 private:
  struct Node {
    size_t connections = 0;
    int64_t budget_bytes = 0;  // below 0: the node must wait
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
