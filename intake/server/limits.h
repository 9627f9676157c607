#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/token_bucket.h"
#include "intake/server/node_rate.h"

namespace tributary::intake {

// Limits the memory that all connections of one loop use together, and the connections, the data rate, the decoding
// work and the new dictionaries of each node. With these limits, many peers together cannot use up the memory, even if
// each of them is within its own limits. And no peer can use all the time of its shard. Use it only on the loop's
// thread.
//
// A node over one of its rates is not refused: its connections pause. The rates are of the node and not of its
// connections, and a node that reconnects keeps its debts.
//
// The memory limit counts only incomplete data: incomplete frames, definitions before their batch, incomplete symbol
// tables. If the limit is exceeded, the connection with the highest value of bytes × (time + 1 s) is closed. `time` is
// how long the connection has had incomplete data. The closed connection is rarely the one of a healthy node, because a
// healthy node completes its frames within a short time.
class Limits {
 public:
  struct Options {
    size_t memory_bytes_max = 256u << 20;
    size_t node_connections_max = 8;
    // On average. A burst may have the bytes, the work or the generations of two seconds at once.
    int64_t node_bytes_per_second = 64 << 20;
    // decode_work.h; the default is 0.3 s of decoding a second. A node of 512 CPUs at 97 Hz needs about 250,000.
    int64_t node_work_per_second = 2'000'000;
    // New dictionary generations. A collector begins one when it connects to a reducer that does not know its
    // dictionary, when its dictionary is full, and for each segment of its spool (1 MiB).
    int64_t node_generations_per_second = 10;
    size_t credit_bytes_max = 512u << 20;  // sent and unacknowledged bytes of all peers together
  };
  Limits(Options options, const Clock& clock) : options_(options), clock_(clock) {}

  // Represents one connection. Its destructor removes the connection from the limits.
  class Share {
   public:
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Sets how much memory the connection uses for incomplete data now. If the limit is exceeded, calls `evict` of this
    // share or of other shares.
    void Hold(size_t bytes);
    // Counts received bytes, work, or new generations. Returns for how many milliseconds the connection must neither
    // read nor decode; 0: it may continue.
    int64_t Take(NodeRate rate, uint64_t amount);

   private:
    friend class Limits;
    Share(Limits& of, std::string node_id, std::function<void()> evict);
    Limits& limits_;
    const std::string node_id_;
    const std::function<void()> evict_;
    size_t bytes_ = 0;
    MonotonicNs since_;  // when bytes_ became other than 0
  };

  // Adds a connection. `evict` must free all incomplete data of the connection, and must not destroy the share.
  // ResourceExhausted if the node already has `node_connections_max` connections. If `node_id` is empty, only the
  // memory is limited.
  absl::StatusOr<std::unique_ptr<Share>> Join(const std::string& node_id, std::function<void()> evict);

  size_t memory_bytes() const { return memory_bytes_; }
  size_t nodes() const { return nodes_.size(); }

  // Returns the credit for a connection's Welcome: `credit_bytes_max` divided by the number of connections, but at
  // least 256 KiB and at most 16 MiB.
  uint32_t CreditBytes() const;

  // Returns true if a session of this loop may log that it was refused. `suppressed`: how many of these log messages
  // were suppressed since the last one. The number of these messages is limited, because peers that reconnect at once
  // could fill the log.
  bool MayLog(uint64_t* suppressed) { return log_limit_.Allow(clock_.Monotonic(), suppressed); }

 private:
  void EvictOne();
  void Leave(const std::string& node_id);
  void ForgetIdleNodes();

  struct Node {
    size_t connections = 0;
    std::array<TokenBucket, kNodeRateCount> rates;  // by NodeRate
  };

  const Options options_;
  const Clock& clock_;
  size_t memory_bytes_ = 0;
  size_t connections_ = 0;
  LogLimit log_limit_{100 * kNsPerMs};
  absl::flat_hash_set<Share*> holding_;
  absl::flat_hash_map<std::string, Node> nodes_;
  size_t idle_nodes_ = 0;  // nodes without a connection
};

}  // namespace tributary::intake
