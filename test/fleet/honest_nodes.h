#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/tcp.h"

namespace tributary {

// Many honest nodes in one process. Each node is a session with the kernel-collector's client: it keeps its batches
// until the reducer acknowledges them, and answers requests for symbol tables. The node ids are "honest-0", "honest-1",
// … Use it only on the loop's thread.
class HonestNodes {
 public:
  static constexpr int kBatchesPerPart = 3;

  struct Options {
    uint16_t port = 0;
    uint32_t nodes = 0;
    UnixNs begin;          // time of the first sample
    int64_t batch_ns = 0;  // what a batch covers
  };
  HonestNodes(Loop& loop, const Options& options);
  ~HonestNodes();

  void SendPart();                   // the next kBatchesPerPart batches of each node
  uint64_t waiting_samples() const;  // neither acknowledged nor lost
  uint64_t lost_samples() const { return lost_; }
  uint64_t samples_per_node() const;  // sent so far
  uint64_t events_per_node() const;

 private:
  struct Node;
  TcpConnector tcp_;
  uint64_t parts_ = 0, lost_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tributary
